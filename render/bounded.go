package render

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"strings"
)

// maxPattern bounds regular expressions, in bytes: repetitions in a pattern
// multiply its length.
const maxPattern = 256

// rule says what is to be done about a function beside calling it.
type rule struct {
	// text marks a function that makes text of values of any type. It is given
	// copies in which no pointer, printed as an address, is left.
	text bool
	// cost spends for a function whose cost is not the sum of its arguments.
	cost func(args []any) error
}

func (b *budget) rule(name string) rule {
	switch name {
	case "print", "println", "html", "js", "urlquery", "toString", "sortAlpha":
		return rule{text: true}
	case "join":
		return rule{text: true, cost: func(args []any) error { return b.grow(weight(args[0]) * length(args[1])) }}
	case "replace":
		return rule{cost: b.replaceCost}
	case "regexMatch":
		return rule{cost: b.regexCost}
	case "fromJson": // an empty list is two characters, and many more bytes
		return rule{cost: func(args []any) error { return b.spend(valueWork * weight(args[0])) }}
	case "has":
		return rule{cost: func(args []any) error { return b.compare(1, args[1]) }}
	case "without":
		return rule{cost: func(args []any) error { return b.compare(len(args), args[0]) }}
	case "uniq":
		return rule{cost: func(args []any) error { return b.compare(length(args[0]), args[0]) }}
	}
	return rule{}
}

// bounded returns a function that calls f within the budget: it pays for what
// f takes and gives, and refuses a result that is too large.
func (b *budget) bounded(f any, r rule) func(args ...any) (any, error) {
	fn := reflect.ValueOf(f)
	return func(args ...any) (any, error) {
		in, err := arguments(fn.Type(), args)
		if err != nil {
			return nil, err
		}
		if err := b.spend(stepWork); err != nil {
			return nil, err
		}
		for i, a := range args {
			if err := b.spend(weight(a)); err != nil {
				return nil, err
			}
			if !r.text {
				continue
			}
			p, err := b.plain(a)
			if err != nil {
				return nil, err
			}
			if p != nil {
				in[i] = reflect.ValueOf(p)
			}
		}
		if r.cost != nil {
			if err := r.cost(args); err != nil {
				return nil, err
			}
		}
		return b.result(fn.Call(in))
	}
}

func (b *budget) result(out []reflect.Value) (any, error) {
	if len(out) == 2 && !out[1].IsNil() {
		return nil, out[1].Interface().(error) //nolint:forcetypeassert // template.FuncMap allows nothing else
	}
	v := out[0].Interface()
	return v, b.grow(weight(v))
}

// arguments converts args to what a function of type t takes.
func arguments(t reflect.Type, args []any) ([]reflect.Value, error) {
	fixed := t.NumIn()
	if t.IsVariadic() {
		fixed--
	}
	if len(args) < fixed || (len(args) > fixed && !t.IsVariadic()) {
		return nil, problem("wrong number of arguments")
	}
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		want := t.In(min(i, t.NumIn()-1))
		if i >= fixed {
			want = want.Elem()
		}
		v := reflect.ValueOf(a)
		switch {
		case !v.IsValid() && nillable(want):
			v = reflect.Zero(want)
		case !v.IsValid():
			return nil, problem("a value is missing")
		case v.Type().AssignableTo(want):
		case v.CanInt() && reflect.Zero(want).CanInt():
			v = v.Convert(want)
		default:
			return nil, problem(fmt.Sprintf("wrong type for value; expected %s; got %s", want, v.Type()))
		}
		in[i] = v
	}
	return in, nil
}

func nillable(t reflect.Type) bool { return t.Kind() == reflect.Interface || t.Kind() == reflect.Map }

// weight is about the memory of v alone, in bytes, without what it refers to.
func weight(v any) int {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		return r.Len()
	case reflect.Slice, reflect.Map:
		return 16 * r.Len()
	}
	return 16
}

// length is the number of items of a list.
func length(v any) int {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice {
		return r.Len()
	}
	return 1
}

// compare pays for comparing list with something so many times.
func (b *budget) compare(times int, list any) error {
	before := b.spent
	if _, err := b.plain(list); err != nil {
		return err
	}
	return b.spend(times * (b.spent - before))
}

func (b *budget) replaceCost(args []any) error {
	var s [3]string
	for i := range s {
		s[i], _ = args[i].(string)
	}
	return b.grow(len(s[2]) + strings.Count(s[2], s[0])*len(s[1]))
}

func (b *budget) regexCost(args []any) error {
	pattern, _ := args[0].(string)
	if len(pattern) > maxPattern {
		return problem(fmt.Sprintf("a regular expression has at most %d characters", maxPattern))
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return problem("the regular expression has an error")
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return problem("the regular expression has an error")
	}
	return b.spend(len(program.Inst) * (stepWork + weight(args[1])))
}
