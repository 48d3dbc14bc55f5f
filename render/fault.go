package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fault is what is wrong with a field of a manifest. Its text holds no value.
type fault struct {
	path fieldPath
	what string
}

// fieldPath leads to a field; its steps are names and indices.
type fieldPath []any

// freeKey is a step that is no name of Kubernetes': a key of a map, or an unknown
// field. One that a template did not write can be secret.
type freeKey string

// printedKey stands for a key that came out of a value.
const printedKey = "(a printed key)"

func (p fieldPath) then(steps ...any) fieldPath { return slices.Concat(p, steps) }

// String returns a path such as spec.containers[0].name.
func (p fieldPath) String() string {
	var out strings.Builder
	for _, step := range p {
		if i, isIndex := step.(int); isIndex {
			fmt.Fprintf(&out, "[%d]", i)
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		fmt.Fprint(&out, step)
	}
	return out.String()
}

// below returns the faults of a part as those of the whole.
func below(step any, faults []fault) []fault {
	for i := range faults {
		faults[i].path = append(fieldPath{step}, faults[i].path...)
	}
	return faults
}

// errorOf joins faults, each with its place in the templates.
func (m *manifest) errorOf(faults []fault) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, problem(m.at(f.path)+": "+m.shown(f.path).String()+" "+f.what))
	}
	return errors.Join(errs...)
}

// shown returns path without the keys that came out of values.
func (m *manifest) shown(path fieldPath) fieldPath {
	out := slices.Clone(path)
	node := m.root
	for i, step := range path {
		var key *yaml.Node
		key, node = m.source.child(node, step)
		if _, free := step.(freeKey); free && (key == nil || isPrinted(key)) {
			out[i] = printedKey
		}
	}
	return out
}

// isPrinted reports whether a key has a value in it.
func isPrinted(key *yaml.Node) bool { return strings.Contains(key.Value, slotStart) }

// child returns what stands at a step below n, with its key if it has one, or
// nil if it does not stand in the text.
func (d *decoder) child(n *yaml.Node, step any) (key, value *yaml.Node) {
	if n == nil {
		return nil, nil
	}
	if i, isIndex := step.(int); isIndex {
		if n.Kind == yaml.SequenceNode && i < len(n.Content) {
			return nil, n.Content[i]
		}
		return nil, nil
	}
	wanted := fmt.Sprint(step)
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if name, err := d.key(n.Content[i]); err == nil && name == wanted {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}
