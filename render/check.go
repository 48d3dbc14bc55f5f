package render

import (
	"iter"
	"path"
	"slices"
	"strings"
)

// check checks m as strictly as the API server does: unknown fields, wrong types
// and bad quantities are faults.
func (m *manifest) check(settings Settings) []fault {
	if faults := m.checkKind(settings); len(faults) > 0 {
		return faults
	}
	return m.shape.misfits(m.object)
}

func (m *manifest) checkKind(settings Settings) []fault {
	if kindOfObject(m.object).may(settings) {
		return nil
	}
	names := slices.Clone(settings.AllowedKinds)
	for _, k := range builtIn() {
		names = append(names, string(k))
	}
	slices.Sort(names)
	return []fault{{fieldPath{"kind"}, "with its apiVersion, must be one of " + strings.Join(names, ", ") + "; the setting templates.allowed_kinds can allow others"}}
}

// A duplicate is an entry of a list whose key an earlier entry has. Server-side
// apply tells entries apart by their keys.
type duplicate struct {
	list listName
	// container is the name of the container that the list belongs to, if any.
	container string
	key       string
	path      fieldPath
	// first is the path of the earlier entry.
	first fieldPath
}

// listName is a list of a Pod whose entries have keys.
type listName string

// The lists that a request has a part in.
const (
	listVolumes    listName = "volumes"
	listContainers listName = "containers"
	listEnv        listName = "env"
	listMounts     listName = "volumeMounts"
)

// duplicates finds the entries of a Pod that share a key. Mount paths are
// compared as the kernel does: /w and /w/ are one.
func duplicates(pod map[string]any) []duplicate {
	spec := mapAt(pod, "spec")
	var found []duplicate
	// where an entry is: its list, and its place there
	type place struct {
		list []any
		i    int
	}
	seen := map[string]place{}
	unique := func(list listName, container string, items any, at ...any) {
		field := "name"
		if list == listMounts {
			field = "mountPath"
		}
		for i, entry := range entries(items) {
			key := stringAt(entry, field)
			if list == listMounts {
				key = path.Clean(key)
			}
			if first, twice := seen[key]; twice {
				pathOf := func(p place) fieldPath { return slices.Concat(fieldPath{"spec"}, p.list, fieldPath{p.i, field}) }
				found = append(found, duplicate{list, container, key, pathOf(place{at, i}), pathOf(first)})
				continue
			}
			seen[key] = place{at, i}
		}
	}
	unique(listVolumes, "", spec["volumes"], "volumes")
	clear(seen)
	for _, list := range [...]string{"initContainers", "containers"} {
		unique(listContainers, "", spec[list], list)
	}
	for _, list := range [...]string{"initContainers", "containers"} {
		for i, c := range entries(spec[list]) {
			name := stringAt(c, "name")
			clear(seen)
			unique(listEnv, name, c["env"], list, i, "env")
			clear(seen)
			unique(listMounts, name, c["volumeMounts"], list, i, "volumeMounts")
		}
	}
	return found
}

func twice(found []duplicate) []fault {
	faults := make([]fault, len(found))
	for i, d := range found {
		faults[i] = fault{d.path, "is that of an earlier entry as well"}
	}
	return faults
}

// entries yields the maps of a list, of an object that was checked.
func entries(list any) iter.Seq2[int, map[string]any] {
	items, _ := list.([]any)
	return func(yield func(int, map[string]any) bool) {
		for i, item := range items {
			entry, _ := item.(map[string]any)
			if !yield(i, entry) {
				return
			}
		}
	}
}

func mapAt(m map[string]any, key string) map[string]any {
	out, _ := m[key].(map[string]any)
	return out
}

func stringAt(m map[string]any, key string) string {
	out, _ := m[key].(string)
	return out
}
