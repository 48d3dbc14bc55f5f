package render

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Explain returns obj as YAML in which a comment at each field says which line
// of which template, of which layer, set it; those without one the runner set.
func (m *Manifests) Explain(obj *unstructured.Unstructured) ([]byte, error) {
	return yaml.Marshal(m.explained(obj, nil, obj.Object))
}

func (m *Manifests) explained(obj *unstructured.Unstructured, at fieldPath, v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, scalar(name), m.explained(obj, at.then(name), v[name]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i, item := range v {
			node.Content = append(node.Content, m.explained(obj, at.then(i), item))
		}
		return node
	}
	node := scalar(v)
	if source := m.sources[obj]; source != nil {
		node.LineComment = source.setBy(at)
	}
	return node
}

func scalar(v any) *yaml.Node {
	node := &yaml.Node{}
	_ = node.Encode(v) // a string, a number, a boolean or nothing always has a node
	return node
}
