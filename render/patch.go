package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/agynio/k8s-runner/workload"
)

// patched merges patches into the objects of their kind and, if they have one,
// their name. A patch for what this workload does not have does nothing.
func (s *Set) patched(objects, patches []manifest, spec *workload.Spec) error {
	for i := range patches {
		patch := &patches[i]
		if faults := s.checkPatch(patch); len(faults) > 0 {
			return patch.errorOf(faults)
		}
		for j := range objects {
			if !patch.isFor(&objects[j]) {
				continue
			}
			if err := objects[j].additions(patch, spec); err != nil {
				return err
			}
			merge(objects[j].object, patch.body())
			objects[j].patches = append(objects[j].patches, patch)
		}
	}
	return nil
}

func (m *manifest) isFor(target *manifest) bool {
	name := stringAt(mapAt(m.object, "metadata"), "name")
	return kindOfObject(m.object) == kindOfObject(target.object) &&
		(name == "" || name == stringAt(mapAt(target.object, "metadata"), "name"))
}

// body is what a patch changes: its name only says of which object.
func (m *manifest) body() map[string]any {
	body := maps.Clone(m.object)
	if metadata := mapAt(body, "metadata"); metadata != nil {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		body["metadata"] = metadata
	}
	return body
}

// checkPatch checks a patch as strictly as an object, but for its directives.
func (s *Set) checkPatch(patch *manifest) []fault {
	if faults := patch.directiveFaults(nil, patch.object); len(faults) > 0 {
		return faults
	}
	return s.check(withoutDirectives(patch.object))
}

// directiveFaults finds directives that are none, and those that a value brings
// along: only who writes a template decides what a patch does.
func (m *manifest) directiveFaults(at fieldPath, v any) []fault {
	var faults []fault
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			faults = append(faults, m.directiveFaults(at.then(i), item)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch value := v[name]; {
			case strings.HasPrefix(name, "$") && m.isPrinted(at, name):
				faults = append(faults, fault{at, "holds a directive that was not written in the template"})
			case name == directive:
				if !slices.Contains([]any{"merge", "replace", "delete"}, value) {
					faults = append(faults, fault{at.then(name), "must be merge, replace or delete"})
				}
			case strings.HasPrefix(name, "$"):
				faults = append(faults, fault{at.then(name), "is no directive; there is only " + directive})
			default:
				faults = append(faults, m.directiveFaults(at.then(name), value)...)
			}
		}
	}
	return faults
}

// additions refuses a container that patch and request both add under one name.
// A patch adds a container if it gives it an image, and changes one of the
// request if it prints the name of that.
func (m *manifest) additions(patch *manifest, spec *workload.Spec) error {
	var violations []workload.Violation
	podSpec := mapAt(patch.object, "spec")
	for _, list := range [...]string{"initContainers", "containers"} {
		for i, c := range entries(podSpec[list]) {
			name := stringAt(c, "name")
			at := fieldPath{"spec", list, i}
			field, there := containerNamed(spec, name)
			if c["image"] == nil || there == nil || patch.isPrinted(at, "name") {
				continue
			}
			violations = append(violations, workload.Violation{
				Field: field + ".name", Token: "duplicate_container_name",
				Message: fmt.Sprintf("a patch adds a container %q as well (%s)", name, patch.at(at.then("name"))),
			})
		}
	}
	return workload.Invalid(violations)
}

// isPrinted reports whether the key name at path, or its value, was printed from
// a value.
func (m *manifest) isPrinted(path fieldPath, name string) bool {
	node := m.root
	for _, step := range path {
		if _, node = m.source.child(node, step); node == nil {
			return true // inside of a printed value
		}
	}
	for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return strings.Contains(node.Content[i+1].Value, slotStart)
		}
	}
	return true
}
