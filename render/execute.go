package render

import (
	"strconv"
	"strings"
	"text/template"
)

// executor executes templates and collects the values that they print. It
// serves one render at a time.
type executor struct {
	budget
	templates *template.Template
	slots     []any
}

func newExecutor(base *template.Template, library template.FuncMap) *executor {
	e := &executor{}
	// Clone fails only for templates that were executed, and base never is.
	e.templates = template.Must(base.Clone())
	e.templates.Funcs(e.functions(library)).Funcs(e.internals())
	return e
}

// run executes the template called name and returns its output, which holds
// slots and marks.
func (e *executor) run(name string, data any) (string, error) {
	if e.templates.Lookup(name) == nil {
		return "", problem("there is no part of that name")
	}
	out := limited{budget: &e.budget}
	err := e.templates.ExecuteTemplate(&out, name, data)
	if err == nil {
		err = e.full
	}
	if err != nil {
		return "", told(name, err)
	}
	return out.String(), nil
}

// reset forgets the values of a render, which may be secret.
func (e *executor) reset() {
	clear(e.slots)
	e.slots, e.budget = e.slots[:0], budget{}
}

// slot keeps v and returns what stands for it in the output.
func (e *executor) slot(v any) (text, error) {
	switch t := v.(type) {
	case text:
		return t, nil
	case block:
		v = t.value
	}
	p, err := e.plain(v)
	if err != nil {
		return "", err
	}
	return e.keep(p), nil
}

// keep returns what stands for the plain value p in the output.
func (e *executor) keep(p any) text {
	e.slots = append(e.slots, p)
	return text(slotStart + strconv.Itoa(len(e.slots)-1) + slotEnd)
}

// limited is a buffer with a bound. It takes what is beyond it and forgets it: the
// next step of the template fails instead, and has a line, which an error of a
// Write has not.
type limited struct {
	strings.Builder
	budget *budget
}

func (l *limited) Write(p []byte) (int, error) {
	err := l.budget.spend(len(p))
	if err == nil && l.Len()+len(p) > maxOutput {
		err = tooMuchOutput
	}
	if err != nil {
		l.budget.full = err
		return len(p), nil
	}
	return l.Builder.Write(p)
}
