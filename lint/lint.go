// Package lint finds what is wrong with a set of templates without a cluster:
// it renders every request that it knows of, and holds each Pod against a Pod
// Security level.
package lint

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/pod-security-admission/api"

	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/workload"
)

// Options say what is linted, and against what.
type Options struct {
	// Suite holds the templates, and the catalog and settings of their operator.
	Suite golden.Suite
	// Cases is the folder of the operator's golden cases; nil means none.
	Cases fs.FS
	// Level is the least strict Pod Security level that a Pod may need. What a
	// request asks for is not held against the templates: Pods with docker are
	// not judged, Linux capabilities of the request are left out. Empty: none is.
	Level api.Level
	// MaxFailed is after how many requests that do not render it stops: templates
	// without end fail slowly. 0 means that all are rendered.
	MaxFailed int
}

// Report is the result.
type Report struct {
	// Findings are sorted, and each is there once.
	Findings []Finding
	// Idle are the templates that made nothing of any request, if nothing was
	// found.
	Idle []string
	// Requests is how many were rendered.
	Requests int
	// Level is the strictest that admits every Pod, but for what requests ask
	// for, and for other settings than those of the operator.
	Level api.Level
}

// Run lints. Its error is none of the templates' but of what comes with them.
func Run(o Options) (Report, error) {
	if _, err := api.ParseLevel(string(o.Level)); err != nil && o.Level != "" {
		return Report{}, err
	}
	if findings := broken(o.Suite); len(findings) > 0 {
		return Report{Findings: findings}, nil // nothing can be rendered
	}
	l, err := newLinter(o.Level)
	if err != nil {
		return Report{}, err
	}
	all, err := subjects(o)
	if err != nil {
		return Report{}, err
	}
	for _, s := range all {
		if l.render(s); o.MaxFailed > 0 && l.failed == o.MaxFailed {
			break
		}
	}
	report := Report{Findings: l.found.sorted(), Requests: l.requests, Level: l.level}
	if len(report.Findings) > 0 {
		return report, nil // what failed made nothing either
	}
	for _, name := range slices.Sorted(maps.Keys(o.Suite.Templates)) {
		if !strings.HasPrefix(name, "_") && !l.made[name] {
			report.Idle = append(report.Idle, name)
		}
	}
	return report, nil
}

// broken finds the templates that cannot be compiled, and layers that do not fit.
func broken(suite golden.Suite) []Finding {
	var found findings
	each := func(layer string, templates map[string]string) {
		for name, text := range templates {
			if _, err := render.Compile(map[string]string{path.Join(layer, name): text}); err != nil {
				found.add(err, "")
			}
		}
	}
	each("", suite.Templates)
	for _, l := range suite.Layers {
		each(l.Name, l.Files)
		each(l.Name, l.Patches)
	}
	if len(found.sorted()) > 0 {
		return found.sorted()
	}
	if _, err := render.Compile(suite.Templates, suite.Layers...); err != nil {
		found.add(err, "")
	}
	return found.sorted()
}

// linter gathers what comes out of renders.
type linter struct {
	judge    *judge
	allowed  api.Level
	found    findings
	made     map[string]bool
	requests int
	failed   int
	level    api.Level
	// last is the engine of lastOptions.
	last        *engine.Engine
	lastOptions engine.Options
}

func newLinter(allowed api.Level) (*linter, error) {
	j, err := newJudge()
	return &linter{judge: j, allowed: allowed, made: map[string]bool{}, level: api.LevelRestricted}, err
}

// render renders s and adds what is wrong to the findings.
func (l *linter) render(s subject) {
	if s.err != nil {
		l.found.add(s.err, s.file)
		return
	}
	e, err := l.engine(s.options)
	if err != nil {
		l.fail(s, err)
		return
	}
	spec, plan, err := e.Plan(s.request)
	if err != nil {
		l.refused(s, err)
		return
	}
	l.requests++
	manifests, err := e.Manifests(spec, plan)
	if err != nil {
		l.fail(s, err)
		return
	}
	for _, obj := range manifests.All() {
		l.made[manifests.File(obj)] = true
	}
	if plan.Docker == "" && l.allowed != "" {
		l.hold(s, spec, manifests)
	}
}

// engine returns one of o; most subjects have the same.
func (l *linter) engine(o engine.Options) (*engine.Engine, error) {
	if l.last != nil && reflect.DeepEqual(o, l.lastOptions) {
		return l.last, nil
	}
	e, err := engine.New(o)
	if err == nil {
		l.last, l.lastOptions = e, o
	}
	return e, err
}

// refused handles a request that is at fault itself: of an operator's case,
// that is a finding unless the case expects it; other requests do not fit his
// catalog or settings.
func (l *linter) refused(s subject, err error) {
	refused := (*workload.Error)(nil)
	if !s.own || s.refused || !errors.As(err, &refused) {
		return
	}
	for _, v := range refused.Violations {
		l.found.add(errors.New(v.Field+": "+v.Message), s.file)
	}
}

// fail handles an error of a render.
func (l *linter) fail(s subject, err error) {
	collides := errors.As(err, new(*workload.Error)) // its cause says where in the templates
	if collides && s.shipped {
		return // in a name of the case, which no request of the operator's need have
	}
	if s.refused && (collides || len(s.ownTemplates) > 0) {
		return // the case is about this error
	}
	l.failed++
	l.found.addOf(s, err)
}

// hold holds the Pod against the level.
func (l *linter) hold(s subject, spec *workload.Spec, manifests *render.Manifests) {
	pod := withoutRequested(manifests.Pod, spec)
	level, err := l.judge.levelOf(pod)
	if err != nil {
		l.found.addOf(s, err)
		return
	}
	allowed := l.allowed
	if s.variant {
		allowed = weaker(allowed, api.LevelBaseline)
	} else {
		l.level = weaker(l.level, level)
	}
	for _, e := range l.judge.excesses(pod, allowed) {
		l.found.addOf(s, errors.New(manifests.Where(manifests.Pod, e.path...)+": "+e.String()))
	}
}
