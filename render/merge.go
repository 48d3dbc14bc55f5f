package render

import (
	"reflect"
	"slices"
)

// directiveKey in a map of a patch says what the map does to what is there: merge
// (as without one), replace or delete.
const directiveKey = "$patch"

// directive is what stands there. The decoder makes one of what is written in the
// text of a patch; a string that a value brings along is data.
type directive string

const (
	mergeThere   directive = "merge"
	replaceThere directive = "replace"
	deleteThere  directive = "delete"
)

// merge merges patch into object of shape s as kubectl patch does, strategically:
// a null deletes, lists merge by the keys of their entries, $patch is honoured. In
// two things it is kinder to those who write patches: lists without keys that name
// more of something, such as tolerations, grow instead of being replaced, and what
// was there keeps its order, the main container first. Of what is not Kubernetes'
// own, lists are replaced (RFC 7386). It takes both apart.
func merge(s *shape, object, patch map[string]any) {
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			mergeMap(s.part(name), object, name, value)
		case []any:
			there, _ := object[name].([]any)
			object[name] = mergeList(listOf(s, name), there, value)
		case directive:
		default:
			object[name] = value
		}
	}
}

func mergeMap(s *shape, object map[string]any, name string, patch map[string]any) {
	there, ok := object[name].(map[string]any)
	switch what := patch[directiveKey]; {
	case what == deleteThere:
		delete(object, name)
		return
	case what == replaceThere, !ok:
		there = map[string]any{}
		object[name] = there
	}
	merge(s, there, patch)
}

// list is a list of a struct.
type list struct {
	name string
	// key is the field by which its entries are told apart, or "": the
	// patchMergeKey of Kubernetes' own types.
	key string
	// entry is nil where nothing is known of the entries.
	entry *shape
}

func listOf(s *shape, name string) list {
	l := list{name: name}
	if part := s.part(name); part != nil && part.kind == reflect.Slice {
		l.key, l.entry = s.keys[name], part.item
	}
	return l
}

func mergeList(l list, there, patch []any) []any {
	if l.entry == nil {
		return patch
	}
	if slices.ContainsFunc(patch, func(item any) bool { return isDirective(item) && within(item, directiveKey) == replaceThere }) {
		there = nil
	}
	if l.key == "" && !grows(l.name) {
		there = nil
	}
	out := slices.Clone(there)
	for _, item := range patch {
		entry, isMap := item.(map[string]any)
		switch {
		case isDirective(item): // of the list
		case isMap && l.key != "":
			out = mergeEntry(l, out, entry)
		case isMap:
			out = addOnce(out, withoutDirectives(l.entry, entry))
		default:
			out = addOnce(out, item)
		}
	}
	return out
}

// isDirective reports whether an entry of a list is nothing but a directive.
func isDirective(item any) bool {
	entry, _ := item.(map[string]any)
	_, is := entry[directiveKey].(directive)
	return is && len(entry) == 1
}

// mergeEntry merges entry into that of there which has its key.
func mergeEntry(l list, there []any, entry map[string]any) []any {
	i := slices.IndexFunc(there, func(item any) bool {
		one, ok := item.(map[string]any)
		return ok && one[l.key] == entry[l.key]
	})
	switch what := entry[directiveKey]; {
	case what == deleteThere && i >= 0:
		return slices.Delete(there, i, i+1)
	case what == deleteThere:
		return there
	case i < 0, entry[l.key] == nil:
		return append(there, withoutDirectives(l.entry, entry))
	case what == replaceThere:
		there[i] = withoutDirectives(l.entry, entry)
		return there
	}
	merge(l.entry, there[i].(map[string]any), entry) //nolint:forcetypeassert // IndexFunc looked
	return there
}

// withoutDirectives is patch where nothing is there to merge it with.
func withoutDirectives(s *shape, patch map[string]any) map[string]any {
	out := map[string]any{}
	merge(s, out, patch)
	return out
}

func addOnce(list []any, item any) []any {
	if slices.ContainsFunc(list, func(there any) bool { return reflect.DeepEqual(there, item) }) {
		return list
	}
	return append(list, item)
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
