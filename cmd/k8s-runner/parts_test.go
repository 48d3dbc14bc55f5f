package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/overrides"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Options{Templates: map[string]string{"pod.yaml": ""}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTemplatesStatus(t *testing.T) {
	e := newEngine(t)
	loaded, rejected := time.Unix(1, 2), time.Unix(3, 4)
	refused := &overrides.Rejection{Findings: []string{"a/b:1: x", "and 1 more"}, At: rejected, ConfigMaps: []string{"a"}}
	told := &k8srunnerv1.TemplatesRejection{Findings: []string{"a/b:1: x", "and 1 more"}, At: timestamppb.New(rejected), ConfigMaps: []string{"a"}}
	for name, c := range map[string]struct {
		state overrides.State
		want  *k8srunnerv1.TemplatesStatus
	}{
		"not read yet":     {overrides.State{}, &k8srunnerv1.TemplatesStatus{}},
		"bad at the start": {overrides.State{Rejection: refused}, &k8srunnerv1.TemplatesStatus{Rejection: told}},
		"as shipped": {
			overrides.State{Engine: e, LoadedAt: loaded},
			&k8srunnerv1.TemplatesStatus{Served: true, Digest: e.Digest(), LoadedAt: timestamppb.New(loaded)},
		},
		"everything": {
			overrides.State{
				Engine: e, LoadedAt: loaded, Rejection: refused,
				Layers: []overrides.Layer{{Name: "a", Kind: "files", ResourceVersion: "7", Digest: "d"}, {Name: "b"}},
			},
			&k8srunnerv1.TemplatesStatus{
				Served: true, Digest: e.Digest(), LoadedAt: timestamppb.New(loaded), Rejection: told,
				Layers: []*k8srunnerv1.TemplateLayer{{Name: "a", Kind: "files", ResourceVersion: "7", Digest: "d"}, {Name: "b"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, templatesStatus(&c.state), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// lost is why the API server is out of reach, or empty.
type lost string

func (l lost) Lost() (string, bool) { return string(l), l != "" }

// TestReadiness: a runner is ready once it has every part, and a good set.
func TestReadiness(t *testing.T) {
	bad := &overrides.State{Rejection: &overrides.Rejection{Findings: []string{"a/b:1: x\ny", "z", "z"}}}
	good := &overrides.State{Engine: newEngine(t), Rejection: bad.Rejection}
	r := newReadiness()
	var server lost
	for _, step := range []struct {
		name      string
		do        func()
		templates *overrides.State
		want      []string
	}{
		{"at first", func() {}, &overrides.State{}, []string{"claims: not read yet", "grpc: not served yet", "pods: not read yet", "templates: not read yet"}},
		{"some parts", func() { r.has(partPods); r.has(partTemplates) }, good, []string{"claims: not read yet", "grpc: not served yet"}},
		{"all parts", func() { r.has(partClaims); r.has(partCalls) }, good, nil},
		{"no good set", func() {}, bad, []string{"templates: none were good since the start: a/b:1: x y, and 2 more findings"}},
		{"no API server", func() { server = "out of reach" }, good, []string{"kubernetes: out of reach"}},
		{"an API server again", func() { server = "" }, good, nil},
		{"the end", func() { r.lacks(partCalls, "the service is stopping") }, good, []string{"grpc: the service is stopping"}},
	} {
		step.do()
		if diff := cmp.Diff(step.want, r.lines(step.templates, server, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
