package render

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

// Bounds of one render. They are far above what a Pod can be: etcd takes
// 1.5 MiB for an object.
const (
	maxOutput = 4 << 20
	maxSteps  = 1_000_000
)

// executor executes templates and collects the values that they print. It
// serves one render at a time.
type executor struct {
	templates *template.Template
	slots     []any
	steps     int
}

func newExecutor(base *template.Template) *executor {
	e := &executor{}
	// Clone fails only for templates that were executed, and base never is.
	e.templates = template.Must(base.Clone())
	e.templates.Funcs(template.FuncMap{
		slotFunc:    e.slot,
		stepFunc:    e.step,
		includeFunc: e.include,
	})
	return e
}

// run executes the template called name and returns its output, which holds
// slots and marks.
func (e *executor) run(name string, data any) (string, error) {
	var out limited
	if err := e.templates.ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: "))
	}
	return out.String(), nil
}

// reset forgets the values of a render, which may be secret.
func (e *executor) reset() {
	clear(e.slots)
	e.slots, e.steps = e.slots[:0], 0
}

// slot keeps v and returns what stands for it in the output.
func (e *executor) slot(v any) (text, error) {
	if t, isText := v.(text); isText {
		return t, nil
	}
	p, err := plain(v)
	if err != nil {
		return "", err
	}
	e.slots = append(e.slots, p)
	return text(slotStart + strconv.Itoa(len(e.slots)-1) + slotEnd), nil
}

func (e *executor) step() (text, error) {
	e.steps++
	if e.steps > maxSteps {
		return "", fmt.Errorf("the template takes more than %d steps", maxSteps)
	}
	return "", nil
}

// include is the part called name as output, to be indented.
func (e *executor) include(name string, data any) (text, error) {
	out, err := e.run(name, data)
	return text(out), err
}

// limited is a buffer with a bound.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, fmt.Errorf("the template prints more than %d bytes", maxOutput)
	}
	return l.Builder.Write(p)
}
