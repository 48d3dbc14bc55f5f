package render

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decode parses the output of a template into objects and puts the values
// into their slots.
func decode(output string, slots []any) ([]map[string]any, error) {
	source, places := unmark(output)
	d := &decoder{slots: slots, places: places}
	var objects []map[string]any
	for y := yaml.NewDecoder(strings.NewReader(source)); ; {
		var doc yaml.Node
		switch err := y.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, d.syntaxError(err)
		}
		v, err := d.value(doc.Content[0])
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case nil: // a document of comments
		case map[string]any:
			objects = append(objects, v)
		default:
			return nil, d.errorf(doc.Content[0], "a manifest must be a mapping")
		}
	}
}

type decoder struct {
	slots  []any
	places []place
}

func (d *decoder) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %s", at(d.places, n.Line), fmt.Sprintf(format, args...))
}

// syntaxError replaces the line of the output by that of the template.
func (d *decoder) syntaxError(err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, what, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			return fmt.Errorf("%s: not YAML: %s", at(d.places, line), what)
		}
	}
	return fmt.Errorf("not YAML: %s", message)
}

func (d *decoder) value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		return d.mapping(n)
	case yaml.SequenceNode:
		items := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if items[i], err = d.value(c); err != nil {
				return nil, err
			}
		}
		return items, nil
	case yaml.ScalarNode:
		return d.scalar(n)
	}
	return nil, d.errorf(n, "anchors and aliases are not supported")
}

func (d *decoder) mapping(n *yaml.Node) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		v, err := d.value(value)
		if err != nil {
			return nil, err
		}
		entries := map[string]any{}
		if key.ShortTag() == "!!merge" {
			var isMap bool
			if entries, isMap = v.(map[string]any); !isMap {
				return nil, d.errorf(key, "<< takes a mapping")
			}
		} else {
			name, err := d.interpolate(key)
			if err != nil {
				return nil, err
			}
			entries[name] = v
		}
		for k, v := range entries {
			if _, twice := m[k]; twice {
				return nil, d.errorf(key, "the key %q is there twice", k)
			}
			m[k] = v
		}
	}
	return m, nil
}

func (d *decoder) scalar(n *yaml.Node) (any, error) {
	if strings.Contains(n.Value, slotStart) {
		if i, whole := wholeSlot(n.Value); whole && n.Style == 0 {
			return d.slots[i], nil
		}
		return d.interpolate(n)
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!null":
		return nil, nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, d.errorf(n, "%v", err)
	}
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case int64, float64, bool, string:
		return v, nil
	}
	return nil, d.errorf(n, "a %s cannot stand in a manifest", n.ShortTag())
}

// interpolate returns the text of a scalar with its slots filled in.
func (d *decoder) interpolate(n *yaml.Node) (string, error) {
	var out strings.Builder
	rest := n.Value
	for {
		before, after, found := strings.Cut(rest, slotStart)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		number, after, _ := strings.Cut(after, slotEnd)
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(d.slots) {
			return "", d.errorf(n, "a value was cut apart")
		}
		s, err := scalarText(d.slots[i])
		if err != nil {
			return "", d.errorf(n, "%v", err)
		}
		out.WriteString(s)
		rest = after
	}
}

// wholeSlot reports whether s is nothing but one slot.
func wholeSlot(s string) (index int, whole bool) {
	number, ok := strings.CutPrefix(s, slotStart)
	if !ok {
		return 0, false
	}
	if number, ok = strings.CutSuffix(number, slotEnd); !ok {
		return 0, false
	}
	index, err := strconv.Atoi(number)
	return index, err == nil
}
