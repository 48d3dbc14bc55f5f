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

func (p fieldPath) then(steps ...any) fieldPath { return slices.Concat(p, steps) }

// String returns a path such as spec.containers[0].name.
func (p fieldPath) String() string {
	var out strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&out, "[%d]", step)
		case string:
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			out.WriteString(step)
		}
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
		errs = append(errs, problem(m.at(f.path)+": "+f.path.String()+" "+f.what))
	}
	return errors.Join(errs...)
}

// at returns the file and line of the template where the field at path stands,
// or if it has no line of its own, what it is a part of.
func (m *manifest) at(path fieldPath) string {
	node := m.root
	line := node.Line
	for _, step := range path {
		if node = m.source.child(node, step); node == nil {
			break
		}
		line = node.Line
	}
	return m.source.at(line)
}

func (d *decoder) child(n *yaml.Node, step any) *yaml.Node {
	switch step := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && step < len(n.Content) {
			return n.Content[step]
		}
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			if name, err := d.key(n.Content[i]); err == nil && name == step {
				return n.Content[i+1]
			}
		}
	}
	return nil
}
