package render

import (
	"reflect"
	"slices"
)

// directive in a map of a patch says what it does to what is there: merge (as
// without one), replace or delete.
const directive = "$patch"

// merge merges patch into object as kubectl patch does, strategically: a null
// deletes, lists merge by the keys of their entries, $patch is honoured. In two
// things it is kinder to those who write patches: lists without keys that name
// more of something, such as tolerations, grow instead of being replaced, and
// what was there keeps its order, the main container first. It takes both apart.
func merge(object, patch map[string]any) {
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			mergeMap(object, name, value)
		case []any:
			there, _ := object[name].([]any)
			object[name] = mergeList(name, there, value)
		default:
			if name != directive {
				object[name] = value
			}
		}
	}
}

func mergeMap(object map[string]any, name string, patch map[string]any) {
	there, ok := object[name].(map[string]any)
	switch what := patch[directive]; {
	case what == "delete":
		delete(object, name)
		return
	case what == "replace", !ok:
		there = map[string]any{}
		object[name] = there
	}
	merge(there, patch)
}

func mergeList(name string, there, patch []any) []any {
	replaces := slices.ContainsFunc(patch, func(item any) bool { return isDirective(item, "replace") })
	if replaces {
		there = nil
	}
	key := mergeKey(name)
	if key == "" && !grows(name) {
		there = nil
	}
	out := slices.Clone(there)
	for _, item := range patch {
		entry, isMap := item.(map[string]any)
		switch {
		case isMap && len(entry) == 1 && entry[directive] != nil: // of the list
		case isMap && key != "":
			out = mergeEntry(out, entry, key)
		case isMap:
			out = addOnce(out, withoutDirectives(entry))
		default:
			out = addOnce(out, item)
		}
	}
	return out
}

func isDirective(item any, what string) bool {
	entry, _ := item.(map[string]any)
	return len(entry) == 1 && entry[directive] == what
}

// mergeEntry merges entry into that of list which has its key.
func mergeEntry(list []any, entry map[string]any, key string) []any {
	i := slices.IndexFunc(list, func(item any) bool {
		there, ok := item.(map[string]any)
		return ok && there[key] == entry[key]
	})
	switch what := entry[directive]; {
	case what == "delete" && i >= 0:
		return slices.Delete(list, i, i+1)
	case what == "delete":
		return list
	case i < 0, entry[key] == nil: // ports of a NetworkPolicy have none
		return append(list, withoutDirectives(entry))
	case what == "replace":
		list[i] = withoutDirectives(entry)
		return list
	}
	merge(list[i].(map[string]any), entry) //nolint:forcetypeassert // IndexFunc looked
	return list
}

// withoutDirectives is patch where nothing is there to merge it with.
func withoutDirectives(patch map[string]any) map[string]any {
	out := map[string]any{}
	merge(out, patch)
	return out
}

func addOnce(list []any, item any) []any {
	if slices.ContainsFunc(list, func(there any) bool { return reflect.DeepEqual(there, item) }) {
		return list
	}
	return append(list, item)
}

// mergeKey is the key of a list's entries, or "" if they have none: the
// patchMergeKey of Kubernetes' own types (k8s.io/api).
func mergeKey(list string) string {
	switch list {
	case "containers", "initContainers", "ephemeralContainers", "env", "volumes", "imagePullSecrets", "schedulingGates", "resourceClaims", "evictionResponders":
		return "name"
	case "volumeMounts":
		return "mountPath"
	case "volumeDevices":
		return "devicePath"
	case "ports":
		return "containerPort"
	case "hostAliases":
		return "ip"
	case "topologySpreadConstraints":
		return "topologyKey"
	case "ownerReferences":
		return "uid"
	}
	return ""
}

// grows reports whether a list without keys grows where strategic merge would
// replace it.
func grows(list string) bool {
	switch list {
	case "tolerations", "envFrom", "supplementalGroups", "add", "drop", "nameservers", "searches", "egress", "ingress", "policyTypes":
		return true
	}
	return false
}

// Overlay lays values over values, map by map; anything else, lists too, replaces
// what is there. It takes both apart.
func Overlay(values, over map[string]any) {
	for key, value := range over {
		there, isMap := values[key].(map[string]any)
		if more, ok := value.(map[string]any); ok && isMap {
			Overlay(there, more)
			continue
		}
		values[key] = value
	}
}

// clone copies the maps and lists of v.
func clone[T any](v T) T {
	switch in := any(v).(type) {
	case map[string]any:
		out := make(map[string]any, len(in))
		for k, item := range in {
			out[k] = clone(item)
		}
		return any(out).(T) //nolint:forcetypeassert // it is of the type of v
	case []any:
		out := make([]any, len(in))
		for i, item := range in {
			out[i] = clone(item)
		}
		return any(out).(T) //nolint:forcetypeassert // it is of the type of v
	}
	return v
}
