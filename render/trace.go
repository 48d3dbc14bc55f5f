package render

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// at returns the file and line of the template where the field at path stands,
// or if it has no line of its own, what it is a part of. The last patch that has
// the field made it what it is.
func (m *manifest) at(path fieldPath) string {
	if where := m.setBy(path); where != "" {
		return where
	}
	node, _ := m.trace(m.object, path)
	return m.source.at(node.Line)
}

// setBy is at for a field that a template set, and "" for others.
func (m *manifest) setBy(path fieldPath) string {
	sources := append([]*manifest{m}, m.patches...)
	if !m.isIdentity(path) { // by which a patch finds what is there already
		slices.Reverse(sources)
	}
	for _, source := range sources {
		if node, reached := source.trace(m.object, path); reached {
			return source.source.at(node.Line)
		}
	}
	return ""
}

// isIdentity reports whether the field at path says which object, or which entry
// of a list, the others belong to.
func (m *manifest) isIdentity(path fieldPath) bool {
	n := len(path)
	if n == 1 {
		return path[0] == "apiVersion" || path[0] == "kind"
	}
	at := spot{shape: m.shape}
	for _, step := range path[:max(n-1, 0)] {
		at = at.then(step)
	}
	return at.key != "" && path[n-1] == at.key
}

// spot is how far a path has come in the types: shape is that of what is there, and
// key tells the entry of a list, or those of the list, from the others.
type spot struct {
	shape *shape
	key   string
}

func (s spot) then(step any) spot {
	name, isName := step.(string)
	if key, isFree := step.(freeKey); isFree {
		name, isName = string(key), true
	}
	if !isName {
		return spot{s.shape.entry(), s.key}
	}
	l := listOf(s.shape, name)
	return spot{s.shape.part(name), l.key}
}

// trace follows path, a path of object, in what one template printed. It returns
// the last node that it came to, and whether that is the end or a printed value
// that holds the end.
func (m *manifest) trace(object any, path fieldPath) (node *yaml.Node, reached bool) {
	node = m.root
	at := spot{shape: m.shape}
	for i, step := range path {
		var next *yaml.Node
		if index, isIndex := step.(int); isIndex {
			next = m.source.entryLike(node, at.key, index, within(object, step))
		} else {
			_, next = m.source.child(node, step)
		}
		if next == nil {
			return node, m.source.holds(node, at, object, path[i:])
		}
		node, at, object = next, at.then(step), within(object, step)
	}
	return node, true
}

// within returns the part of v at step.
func within(v, step any) any {
	if i, isIndex := step.(int); isIndex {
		if items, _ := v.([]any); i < len(items) {
			return items[i]
		}
		return nil
	}
	fields, _ := v.(map[string]any)
	return fields[fmt.Sprint(step)]
}

// holds reports whether the value printed at n has what object has at path.
func (d *decoder) holds(n *yaml.Node, at spot, object any, path fieldPath) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	value, err := d.value(n)
	if err != nil {
		return false
	}
	for _, step := range path {
		wanted := within(object, step)
		if _, isIndex := step.(int); isIndex {
			items, _ := value.([]any)
			i := slices.IndexFunc(items, func(item any) bool { return alike(at.key, item, wanted) })
			if i < 0 {
				return false
			}
			value = items[i]
		} else if value = within(value, step); value == nil {
			return false
		}
		at, object = at.then(step), wanted
	}
	return true
}

// entryLike returns the entry of the list n that became item, or nil. Most are at
// the same place i still.
func (d *decoder) entryLike(n *yaml.Node, key string, i int, item any) *yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return nil
	}
	if i < len(n.Content) && d.isLike(n.Content[i], key, item) {
		return n.Content[i]
	}
	for _, entry := range n.Content {
		if d.isLike(entry, key, item) {
			return entry
		}
	}
	return nil
}

func (d *decoder) isLike(entry *yaml.Node, key string, item any) bool {
	value, err := d.value(entry)
	return err == nil && alike(key, value, item)
}

// alike reports whether two entries of a list are one: by their key, if they have
// one.
func alike(key string, a, b any) bool {
	one, isMap := a.(map[string]any)
	other, _ := b.(map[string]any)
	if isMap && key != "" && other[key] != nil {
		return reflect.DeepEqual(one[key], other[key])
	}
	return reflect.DeepEqual(a, b)
}
