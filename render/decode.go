package render

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// manifest is an object of a template's output.
type manifest struct {
	object map[string]any
	shape  *shape
	// root and source lead from a field back to the template.
	root   *yaml.Node
	source *decoder
	// patches are those merged into object, in that order.
	patches []*manifest
}

// decode parses the output of the template file into objects, or into patches of
// some, and puts the values into their slots.
func (s *Set) decode(file, output string, slots []any, patches bool) ([]manifest, error) {
	doc, err := s.parsed.parse(output)
	d := &decoder{file: file, slots: slots, places: doc.places, patches: patches}
	if i := forged.FindStringIndex(doc.source); i != nil {
		return nil, d.errorf(lineAt(doc.source, i[0]), "holds a character that is reserved for the renderer")
	}
	if err != nil {
		return nil, d.syntaxError(doc.source, err)
	}
	var manifests []manifest
	for _, root := range doc.roots {
		v, err := d.value(root)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case nil: // a document of comments
		case map[string]any:
			manifests = append(manifests, manifest{object: v, shape: s.kinds.shapeOf(kindOfObject(v)), root: root, source: d})
		default:
			return nil, d.errorf(root.Line, "a manifest must be a mapping")
		}
	}
	return manifests, nil
}

// forged matches YAML escapes that would become slots or marks.
var forged = regexp.MustCompile(`\\(u|U0000)[eE]00[0-3]`)

type decoder struct {
	file   string
	slots  []any
	places []place
	// patches is true if the file is one in which directives count.
	patches bool
}

// errorf is an error at a line of the output. Its text must hold no value.
func (d *decoder) errorf(line int, format string, args ...any) error {
	return problem(d.at(line) + ": " + fmt.Sprintf(format, args...))
}

// at returns the file and line of the template that printed a line of output.
func (d *decoder) at(line int) string {
	if where, known := at(d.places, line); known {
		return where
	}
	return d.file
}

// syntaxError tells what YAML says about source, at the line of the template.
func (d *decoder) syntaxError(source string, err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		_, message, _ = strings.Cut(rest, ": ")
	}
	return d.errorf(brokenLine(source), "not YAML: %s", message)
}

// brokenLine returns the line with which source ceases to be YAML. What the
// parser says is the line where the mapping around it starts, or one less.
func brokenLine(source string) int {
	if len(source) > maxSearched {
		return 1
	}
	lines := strings.SplitAfter(source, "\n")
	broken := func(n int) bool { return !isYAML(strings.Join(lines[:n], "")) }
	first, healthy := 0, 0
	for range maxUnfinished {
		first = healthy + 1 + sort.Search(len(lines)-healthy-1, func(i int) bool { return broken(healthy + 1 + i) })
		// In the middle of a list or a string, all is well after some lines.
		last := min(first+maxUnfinished, len(lines))
		for healthy = first; healthy < last && broken(healthy); {
			healthy++
		}
		if healthy == last && broken(last) {
			break
		}
	}
	return first
}

// Bounds of brokenLine, in bytes and lines.
const (
	maxSearched   = 256 << 10
	maxUnfinished = 20
)

func isYAML(source string) bool {
	for y := yaml.NewDecoder(strings.NewReader(source)); ; {
		var doc yaml.Node
		if err := y.Decode(&doc); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func (d *decoder) value(n *yaml.Node) (any, error) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return nil, d.errorf(n.Line, "anchors and aliases are not supported")
	}
	switch tag := n.ShortTag(); tag {
	case "!!map":
		return d.mapping(n)
	case "!!seq":
		items := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if items[i], err = d.value(c); err != nil {
				return nil, err
			}
		}
		return items, nil
	case "!!str", "!!timestamp", "!!null", "!!bool", "!!int", "!!float", "!!merge":
		return d.scalar(n, tag)
	}
	return nil, d.errorf(n.Line, "a value of this YAML type cannot stand in a manifest")
}

func (d *decoder) mapping(n *yaml.Node) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		v, err := d.value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		if key.ShortTag() != "!!merge" {
			name, err := d.key(key)
			if err != nil {
				return nil, err
			}
			if d.patches && key.Value == directiveKey {
				if v, err = d.directive(n.Content[i+1]); err != nil {
					return nil, err
				}
			}
			if err := d.add(m, key, name, v); err != nil {
				return nil, err
			}
			continue
		}
		entries, isMap := v.(map[string]any)
		if !isMap {
			return nil, d.errorf(key.Line, "<< takes a mapping")
		}
		for name, v := range entries {
			if err := d.add(m, key, name, v); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (d *decoder) add(m map[string]any, at *yaml.Node, name string, v any) error {
	if _, twice := m[name]; !twice {
		m[name] = v
		return nil
	}
	switch {
	case at.ShortTag() == "!!merge":
		return d.errorf(at.Line, "a key of << is there twice")
	case isPrinted(at):
		return d.errorf(at.Line, "%s is there twice", printedKey)
	}
	return d.errorf(at.Line, "the key %q is there twice", at.Value)
}

// directive is one that was written: only who writes a template decides what its
// patch does.
func (d *decoder) directive(n *yaml.Node) (any, error) {
	what := directive(n.Value) // a slot is none of these
	if n.Kind != yaml.ScalarNode || !slices.Contains([]directive{mergeThere, replaceThere, deleteThere}, what) {
		return nil, d.errorf(n.Line, "%s must be merge, replace or delete, in the text of the template", directiveKey)
	}
	return what, nil
}

func (d *decoder) key(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" {
		return "", d.errorf(n.Line, "a key must be a scalar without an anchor")
	}
	return d.interpolate(n)
}

func (d *decoder) scalar(n *yaml.Node, tag string) (any, error) {
	if strings.Contains(n.Value, slotStart) {
		if i, whole := wholeSlot(n.Value); whole && n.Style == 0 && i < len(d.slots) {
			return d.slots[i], nil
		}
		return d.interpolate(n)
	}
	switch tag {
	case "!!bool", "!!int", "!!float":
	case "!!null":
		return nil, nil
	default:
		return n.Value, nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, d.errorf(n.Line, "not a value of its YAML type")
	}
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case int64, float64, bool:
		return v, nil
	}
	return nil, d.errorf(n.Line, "the number is too large")
}

// interpolate returns the text of a scalar with its slots filled in.
func (d *decoder) interpolate(n *yaml.Node) (string, error) {
	s, err := fill(n.Value, d.slots)
	if err != nil {
		return "", d.errorf(n.Line, "%v", err)
	}
	return s, nil
}
