package overrides

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/workload"
)

// TestStateOfLayers: each layer is told with its kind, version and content.
func TestStateOfLayers(t *testing.T) {
	values := layer("z-values", "values.yaml")
	values.Labels[workload.LabelTemplates], values.Data = workload.TemplateValues, map[string]string{"values.yaml": "a: 1"}
	client := fake.NewClientset(values, layer("b", "one.yaml"), layer("a", "one.yaml"))
	s, events, _ := start(t, client)
	for _, name := range []string{"a", "b", "z-values"} {
		events.want(t, name+" TemplatesLoaded: the runner renders with it from now on")
	}
	first := s.Current()
	same := digest(map[string]string{"one.yaml": "x"})
	want := []Layer{
		{Name: "a", Kind: "files", ResourceVersion: "one.yaml", Digest: same},
		{Name: "b", Kind: "files", ResourceVersion: "one.yaml", Digest: same},
		{Name: "z-values", Kind: "values", ResourceVersion: "values.yaml", Digest: digest(values.Data)},
	}
	if diff := cmp.Diff(want, first.Layers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Of an edit of metadata alone the version is another, the content is not.
	annotated := layer("b", "one.yaml")
	annotated.ResourceVersion, annotated.Annotations = "2", map[string]string{"a": "b"}
	if _, err := client.CoreV1().ConfigMaps("ns").Update(t.Context(), annotated, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	events.want(t, "b TemplatesLoaded: the runner renders with it from now on")
	want[1].ResourceVersion = "2"
	if diff := cmp.Diff(want, s.Current().Layers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	seen := map[string]int{}
	for i, texts := range []map[string]string{
		nil, {"a": ""}, {"a": "x"}, {"a": "y"}, {"b": "x"}, {"a": "x", "b": "y"}, {"a": "y", "b": "x"}, {"a": "xb\ny"}, {"a": "xb 1\ny"},
	} {
		d := digest(texts)
		if other, taken := seen[d]; taken || len(d) != 16 {
			t.Errorf("%d and %d have the digest %s", i, other, d)
		}
		seen[d] = i
	}
}

// TestRejectionOnce: what was refused is tried again only when it changes, and
// the start counts once.
func TestRejectionOnce(t *testing.T) {
	client := fake.NewClientset(layer("a", "broken.yaml"), layer("b", "one.yaml"))
	s, events, results := start(t, client)
	events.want(t, "a TemplatesRejected: a/broken.yaml:1: it is broken")
	maps := client.CoreV1().ConfigMaps("ns")
	// The same again, and then an edit, which is seen after it.
	for _, next := range []*corev1.ConfigMap{layer("a", "broken.yaml"), layer("b", "two.yaml")} {
		if _, err := maps.Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	events.want(t, "a TemplatesRejected: a/broken.yaml:1: it is broken")
	want := &Rejection{Findings: []string{"a/broken.yaml:1: it is broken"}, ConfigMaps: []string{"a"}}
	if diff := cmp.Diff(want, s.Current().Rejection, cmpopts.IgnoreFields(Rejection{}, "At"), cmpopts.IgnoreUnexported(Rejection{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at := s.Current().Rejection.At; time.Since(at) > time.Minute {
		t.Errorf("it was at %s", at)
	}
	if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	events.want(t, "b TemplatesLoaded: the runner renders with it from now on")
	if now := s.Current(); now.Rejection != nil || len(now.Layers) != 1 {
		t.Errorf("after the mend it is %+v", now)
	}
	if got := results.counted(); got != "rejected, rejected, loaded" {
		t.Errorf("the results are %s", got)
	}
}

// TestConcerned: a rejection is about the ConfigMaps that it names, or else about
// those that are new.
func TestConcerned(t *testing.T) {
	all := []*corev1.ConfigMap{layer("a", "1"), layer("ab", "2"), layer("b", "2")}
	state := &State{Layers: []Layer{{Name: "a", ResourceVersion: "1"}, {Name: "ab", ResourceVersion: "1"}}}
	for name, c := range map[string]struct {
		findings, want []string
	}{
		"one is named":            {[]string{"a/pod.yaml:1: x"}, []string{"a"}},
		"two are":                 {[]string{"a/pod.yaml:1: x", "pod.yaml:1: y", "b: z"}, []string{"a", "b"}},
		"a shipped template":      {[]string{"pod.yaml:1: x"}, []string{"ab", "b"}},
		"a name that begins like": {[]string{"ab/pod.yaml:1: x"}, []string{"ab"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, names(state.concerned(all, c.findings))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindingsOf(t *testing.T) {
	long := strings.Repeat("é", maxFinding)
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"one":                  {errors.New("a/b:1: x"), []string{"a/b:1: x"}},
		"several":              {errors.Join(errors.New("a/b:1: x"), errors.New("a/b:2: y")), []string{"a/b:1: x", "a/b:2: y"}},
		"one of several lines": {errors.New("a/b: yaml:\n  line 1: x\n  line 2: y\n\na/c:1: z\n"), []string{"a/b: yaml: line 1: x line 2: y", "a/c:1: z"}},
		"a long one":           {errors.New("-" + long), []string{"-" + long[:maxFinding-2] + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, findingsOf(c.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFindingsHoldNoData: a template can put all that it sees where it does not
// belong; the findings tell where, and nothing of it.
func TestFindingsHoldNoData(t *testing.T) {
	const token, value = "s3cr3t-token", "s3cr3t-value"
	suite, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	suite.Config.Gateway.ServiceToken = token
	probe := &Probe{Suite: suite, DryRun: func(context.Context, *unstructured.Unstructured) error { return nil }}
	const pod = "apiVersion: v1\nkind: Pod\n"
	for _, text := range []string{
		"{{ fail (toJson .) }}",
		"kind: {{ toJson . }}",
		pod + "spec: {nope: {{ toJson . }}}",
		pod + "spec: {hostNetwork: {{ .Values.a }}}",
		pod + "metadata: {labels: {{ .Values.a }}}",
		pod + "spec: {priority: {{ .Values.a }}}",
		pod + "spec: {securityContext: {sysctls: [{name: {{ .Values.a }}, value: {{ .Values.a }}}]}}",
	} {
		_, err = probe.Probe(t.Context(), []render.Layer{{
			Name: "mine", Values: map[string]any{"a": value}, Patches: map[string]string{"pod.yaml": text},
		}})
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		findings := strings.Join(findingsOf(err), "\n")
		if !strings.Contains(findings, "mine/pod.yaml:") || strings.Contains(findings, token) || strings.Contains(findings, value) {
			t.Errorf("of %q the findings are\n%s", text, findings)
		}
	}
}
