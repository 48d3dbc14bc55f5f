package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Fault is one thing that is wrong with a catalog file.
type Fault struct {
	// Line counts from 1.
	Line int
	// Field is a path such as flavors[1].resources.limitsCpu.
	Field   string
	Message string
}

// String returns "line: field: message".
func (f Fault) String() string { return fmt.Sprintf("%d: %s: %s", f.Line, f.Field, f.Message) }

// reader reads YAML nodes into values and collects faults, so that one bad
// field hides no other.
type reader struct {
	faults []Fault
}

func (r *reader) fault(n *yaml.Node, path, format string, args ...any) {
	r.faults = append(r.faults, Fault{Line: n.Line, Field: path, Message: fmt.Sprintf(format, args...)})
}

// fields maps the names of a mapping's keys to what reads them.
type fields map[string]func(n *yaml.Node, path string)

// mapping reads the known keys of n, in either spelling: requestsCpu or
// requests_cpu. Unknown and repeated keys are faults.
func (r *reader) mapping(n *yaml.Node, path string, known fields) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, path, "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := camel(key.Value)
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		read, ok := known[name]
		switch {
		case !ok:
			r.fault(key, at, "is unknown")
		case seen[name]:
			r.fault(key, at, "is there twice")
		default:
			read(value, at)
		}
		seen[name] = true
	}
}

// camel turns requests_cpu into requestsCpu.
func camel(key string) string {
	words := strings.Split(key, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// list reads each item of n; an empty value is an empty list.
func (r *reader) list(n *yaml.Node, path string, item func(n *yaml.Node, path string)) {
	if n.Kind != yaml.SequenceNode {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!null" {
			r.fault(n, path, "must be a list")
		}
		return
	}
	for i, c := range n.Content {
		item(c, path+"["+strconv.Itoa(i)+"]")
	}
}

// text returns what reads a scalar as it is written: 100 is "100".
func (r *reader) text(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			r.fault(n, path, "must be text")
			return
		}
		*to = n.Value
	}
}

func (r *reader) flag(to *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.ShortTag() != "!!bool" || n.Decode(to) != nil {
			r.fault(n, path, "must be true or false")
		}
	}
}

func (r *reader) number(n *yaml.Node, path string) int64 {
	var v int64
	if n.ShortTag() != "!!int" || n.Decode(&v) != nil {
		r.fault(n, path, "must be a whole number")
	}
	return v
}

// pairs reads a mapping of text to text; check judges each pair.
func (r *reader) pairs(to *map[string]string, check func(n *yaml.Node, path, key, value string)) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			r.fault(n, path, "must be a mapping")
			return
		}
		*to = map[string]string{}
		for i := 0; i < len(n.Content); i += 2 {
			key, at := n.Content[i].Value, path+"."+n.Content[i].Value
			if _, twice := (*to)[key]; twice {
				r.fault(n.Content[i], at, "is there twice")
			}
			var value string
			r.text(&value)(n.Content[i+1], at)
			(*to)[key] = value
			check(n.Content[i], at, key, value)
		}
	}
}
