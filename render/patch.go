package render

import (
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
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

// additions refuses what patch and request both add under one name: a container, a
// volume, a mount at one path. A patch adds what it gives a name that it wrote
// itself, and changes what the request has if it prints the name of that.
func (m *manifest) additions(patch *manifest, spec *workload.Spec) error {
	podSpec := mapAt(patch.object, "spec")
	violations := patch.addedVolumes(entries(podSpec["volumes"]), spec)
	for _, list := range [...]string{"initContainers", "containers"} {
		for i, c := range entries(podSpec[list]) {
			name := stringAt(c, "name")
			at := fieldPath{"spec", list, i}
			field, there := containerNamed(spec, name)
			if there == nil {
				continue
			}
			if c["image"] != nil && !patch.isPrinted(at, "name") {
				violations = append(violations, patch.alsoAdds(field+".name", "duplicate_container_name", "a container", name, at.then("name")))
				continue
			}
			violations = append(violations, patch.addedMounts(at, c, field, there)...)
		}
	}
	return workload.Invalid(violations)
}

func (m *manifest) alsoAdds(field, token, what, name string, at fieldPath) workload.Violation {
	return workload.Violation{Field: field, Token: token, Message: fmt.Sprintf("a patch adds %s %q as well (%s)", what, name, m.at(at))}
}

func (m *manifest) addedVolumes(volumes iter.Seq2[int, map[string]any], spec *workload.Spec) []workload.Violation {
	var violations []workload.Violation
	for i, v := range volumes {
		at := fieldPath{"spec", "volumes", i}
		j := slices.IndexFunc(spec.Volumes, func(of workload.Volume) bool { return of.Name == v["name"] })
		if j < 0 || saysWhat(v) || m.isPrinted(at, "name") {
			continue
		}
		violations = append(violations, m.alsoAdds(entry("volumes", j, ".name"), "duplicate_volume_name", "a volume", spec.Volumes[j].Name, at.then("name")))
	}
	return violations
}

// addedMounts are those of a container, which the request has at field.
func (m *manifest) addedMounts(at fieldPath, container map[string]any, field string, of *workload.Container) []workload.Violation {
	var violations []workload.Violation
	for i, mount := range entries(container["volumeMounts"]) {
		at := at.then("volumeMounts", i)
		where := path.Clean(stringAt(mount, "mountPath"))
		asked, token := requestedMount(of, field, where)
		if asked == "" || saysWhat(mount) || m.isPrinted(at, "mountPath") {
			continue
		}
		violations = append(violations, m.alsoAdds(asked, token, "a mount at", where, at.then("mountPath")))
	}
	return violations
}

// saysWhat reports whether an entry of a patch says itself what becomes of what is
// there.
func saysWhat(entry map[string]any) bool {
	_, is := entry[directiveKey].(directive)
	return is
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
