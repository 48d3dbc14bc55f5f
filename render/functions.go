package render

import (
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// hermetic lists the functions of sprig that templates may call: those that
// neither read the environment, the network, the clock or randomness, nor
// change their arguments.
func hermetic() []string {
	return []string{
		"add", "add1", "all", "any", "append", "atoi", "b64enc", "coalesce", "compact", "concat", "contains",
		"default", "div", "empty", "fail", "first", "float64", "fromJson", "has", "hasPrefix", "hasSuffix", "initial",
		"int", "int64", "join", "kindIs", "last", "list", "lower", "max", "min", "mod", "mul", "prepend", "regexMatch",
		"replace", "rest", "reverse", "sha256sum", "sortAlpha", "splitList", "sub", "ternary", "toString", "trim",
		"trimAll", "trimPrefix", "trimSuffix", "trunc", "uniq", "upper", "without",
	}
}

// Functions that templates cannot name: instrument puts them there.
const (
	slotFunc  = "_slot"
	stepFunc  = "_step"
	enterFunc = "_enter"
	leaveFunc = "_leave"
	// internal before the name of a function is its form that keeps structure.
	internal = "_"
)

// maxIndent bounds nindent and indent, in columns.
const maxIndent = 64

// library returns the functions of sprig, and those of text/template that make
// text, by name.
func library() template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	out := template.FuncMap{
		"print":    fmt.Sprint,
		"println":  fmt.Sprintln,
		"html":     template.HTMLEscaper,
		"js":       template.JSEscaper,
		"urlquery": template.URLQueryEscaper,
	}
	for _, name := range hermetic() {
		out[name] = all[name]
	}
	return out
}

// functions returns every function that a template may name.
func (e *executor) functions(library template.FuncMap) template.FuncMap {
	out := make(template.FuncMap, len(library)+10)
	for name, f := range library {
		out[name] = e.bounded(f, e.rule(name))
	}
	out["printf"] = e.printf
	out["dict"] = e.dict
	out["hasKey"] = hasKey
	out["quote"] = e.quote
	out["squote"] = e.quote
	// As values, these are texts.
	out["toJson"] = e.jsonText
	out["toYaml"] = e.jsonText
	out["indent"] = e.indent
	out["nindent"] = e.nindent
	out["include"] = func(name string, data any) (string, error) {
		output, err := e.run(name, data)
		if err != nil {
			return "", err
		}
		source, _ := unmark(output)
		return fill(source, e.slots)
	}
	return out
}

// internals returns the functions that instrument puts into templates. Where a
// template prints, the output of a part and the result of toYaml keep their
// structure: the one is inserted, the other becomes the value itself.
func (e *executor) internals() template.FuncMap {
	return template.FuncMap{
		slotFunc:  e.slot,
		stepFunc:  e.step,
		enterFunc: e.enter,
		leaveFunc: e.leave,

		internal + "toJson": func(v any) any { return v },
		internal + "toYaml": func(v any) block { return block{v} },
		internal + "include": func(name string, data any) (text, error) {
			output, err := e.run(name, data)
			return text(output), err
		},
		internal + "indent": func(columns int, v any) (text, error) {
			return e.printIndented("", columns, v)
		},
		internal + "nindent": func(columns int, v any) (text, error) {
			return e.printIndented("\n", columns, v)
		},
	}
}

// text is template output: it is printed as it is, not as a slot.
type text string

// block is the result of toYaml: a value that stands in lines of its own.
type block struct{ value any }

// printIndented indents template output, or what stands for a value.
func (e *executor) printIndented(before string, columns int, v any) (text, error) {
	var t text
	var err error
	if b, isBlock := v.(block); isBlock {
		t, err = e.printBlock(b.value)
	} else {
		t, err = e.slot(v)
	}
	if err != nil {
		return "", err
	}
	indented, err := e.indent(columns, string(t))
	return text(before + indented), err
}

// printBlock prints a map or a list so that other entries can stand before and
// after it, as authors of toYaml are used to. An empty list prints nothing.
func (e *executor) printBlock(v any) (text, error) {
	p, err := e.plain(v)
	if err != nil {
		return "", err
	}
	switch p := p.(type) {
	case map[string]any:
		return "<<: " + e.keep(p), nil
	case []any:
		lines := make([]string, len(p))
		for i, item := range p {
			lines[i] = "- " + string(e.keep(item))
		}
		return text(strings.Join(lines, "\n")), nil
	}
	return e.keep(p), nil
}

func (b *budget) indent(columns int, s string) (string, error) {
	if columns < 0 || columns > maxIndent {
		return "", problem(fmt.Sprintf("an indentation is between 0 and %d columns", maxIndent))
	}
	pad := strings.Repeat(" ", columns)
	if err := b.grow(len(s) + columns*(1+strings.Count(s, "\n"))); err != nil {
		return "", err
	}
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
}

func (b *budget) nindent(columns int, s string) (string, error) {
	s, err := b.indent(columns, s)
	return "\n" + s, err
}

// quote makes a string of v, so that it is never taken for a number or a
// boolean. It adds no quotes: a value needs none.
func (b *budget) quote(v any) (string, error) {
	p, err := b.plain(v)
	if err != nil {
		return "", err
	}
	return scalarText(p)
}

// dict makes a map of keys and values in turn.
func (b *budget) dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, problem("dict takes keys and values in turn")
	}
	out := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, isString := pairs[i].(string)
		if !isString {
			return nil, problem("the keys of a dict are strings")
		}
		out[key] = pairs[i+1]
	}
	return out, b.spend(stepWork * len(pairs))
}

// hasKey is for maps of every type.
func hasKey(m any, key string) (bool, error) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Map || v.Type().Key().Kind() != reflect.String {
		return false, problem("hasKey takes a map")
	}
	return v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key())).IsValid(), nil
}
