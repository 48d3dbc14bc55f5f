package render

import (
	"fmt"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// hermetic lists the functions of sprig that templates may call: those that
// neither read the environment, the network, the clock or randomness, nor
// change their arguments, nor make much of little.
var hermetic = [...]string{
	"add", "add1", "all", "any", "append", "atoi", "b64enc", "coalesce", "compact", "concat", "contains",
	"default", "dict", "div", "empty", "fail", "first", "float64", "fromJson", "has", "hasKey", "hasPrefix",
	"hasSuffix", "initial", "int", "int64", "join", "kindIs", "last", "list", "lower", "max", "min", "mod",
	"mul", "prepend", "regexMatch", "replace", "rest", "reverse", "sha256sum", "sortAlpha", "splitList",
	"sub", "ternary", "toString", "trim", "trimAll", "trimPrefix", "trimSuffix", "trunc", "uniq", "upper",
	"without",
}

// Functions that are bound to one execution.
const (
	slotFunc    = "_slot"
	stepFunc    = "_step"
	includeFunc = "include"
)

// maxIndent bounds nindent and indent, in columns.
const maxIndent = 64

// functions returns every function that a template may call. Those bound to
// an execution are placeholders, for the parser alone.
func functions() template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	out := make(template.FuncMap, len(hermetic)+10)
	for _, name := range hermetic {
		out[name] = all[name]
	}
	// Values need no encoding here, but authors have the habit.
	out["toJson"] = func(v any) encoded { return encoded{v} }
	out["toYaml"] = func(v any) encoded { return encoded{v} }
	out["quote"] = quote
	out["squote"] = quote
	out["indent"] = indent
	out["nindent"] = func(columns int, v any) (any, error) {
		v, err := indent(columns, v)
		if t, isText := v.(text); isText {
			return "\n" + t, err
		}
		return v, err
	}
	out[slotFunc] = func(any) text { return "" }
	out[stepFunc] = func() text { return "" }
	out[includeFunc] = func(string, any) (text, error) { return "", nil }
	return out
}

// text is template output: it is printed as it is, not as a slot.
type text string

// encoded is a value whose structure is wanted where it is printed.
type encoded struct{ value any }

// quote makes a string of v, so that it is never taken for a number or a
// boolean. A structure becomes its JSON.
func quote(v any) (string, error) {
	if e, ok := v.(encoded); ok {
		return jsonText(e.value)
	}
	plain, err := plain(v)
	if err != nil {
		return "", err
	}
	return scalarText(plain)
}

// indent indents template output. A value needs no indentation.
func indent(columns int, v any) (any, error) {
	t, isText := v.(text)
	if !isText {
		return v, nil
	}
	if columns < 0 || columns > maxIndent {
		return nil, fmt.Errorf("an indentation of %d columns is not between 0 and %d", columns, maxIndent)
	}
	pad := strings.Repeat(" ", columns)
	return text(pad + strings.ReplaceAll(string(t), "\n", "\n"+pad)), nil
}
