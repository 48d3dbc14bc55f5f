package render

import (
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/agynio/k8s-runner/workload"
)

// patched merges patches into the objects of their kind and, if they have one,
// their name. A patch for what this workload does not have does nothing.
func patched(objects, patches []manifest, spec *workload.Spec, settings Settings) error {
	for i := range patches {
		patch := &patches[i]
		if faults := patch.checkPatch(settings); len(faults) > 0 {
			return patch.errorOf(faults)
		}
		for j := range objects {
			if !patch.isFor(&objects[j]) {
				continue
			}
			if err := objects[j].additions(patch, spec); err != nil {
				return err
			}
			merge(patch.shape, objects[j].object, patch.body())
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
func (m *manifest) checkPatch(settings Settings) []fault {
	if faults := m.checkKind(settings); len(faults) > 0 {
		return faults
	}
	if m.shape.isCustom() {
		return m.shape.misfits(m.object)
	}
	return m.shape.misfits(withoutDirectives(m.shape, m.object))
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
