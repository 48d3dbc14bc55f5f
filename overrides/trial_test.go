package overrides

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/workload"
)

// asked is a cluster that says of each object what answer says.
type asked struct {
	names  []string
	answer func(object *unstructured.Unstructured) error
}

func (a *asked) dryRun(_ context.Context, object *unstructured.Unstructured) error {
	a.names = append(a.names, object.GetKind()+" "+anyID.ReplaceAllString(object.GetName(), "ID"))
	return a.answer(object)
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

const companions = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}}
data: {flavor: {{ .Flavor.Name }}}
---
apiVersion: a.example/v1
kind: Thing
metadata: {name: {{ .Name }}-thing}
spec:
  size: {{ .Values.size | default 3 }}
  parts:
  - {name: a, x: 1}
{{- if .Flavor.Name }}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Name }}-of-flavor}
{{- end }}
`

// TestDryRun: what the cluster refuses is the layers' fault only if it takes the
// same of what ships, and is told with its place.
func TestDryRun(t *testing.T) {
	suite, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	suite.Config.Templates.AllowedKinds = []string{"v1 ConfigMap", "a.example/v1 Thing"}
	patch := []render.Layer{{Name: "mine", Patches: map[string]string{"pod.yaml": "apiVersion: v1\nkind: Pod\nspec: {runtimeClassName: none}\n"}}}
	files := []render.Layer{{Name: "mine", Files: map[string]string{"more.yaml": companions}, Values: map[string]any{"size": 1}}}
	of := func(kind string, err error) func(*unstructured.Unstructured) error {
		return func(object *unstructured.Unstructured) error {
			if object.GetKind() == kind {
				return err
			}
			return nil
		}
	}
	faulty := workload.Errorf(workload.FailedPrecondition, "rejected_by_kubernetes", "the API server refuses it")
	faulty.Violations = []workload.Violation{{Field: "spec.size", Message: "FieldValueTypeInvalid"}, {Field: "spec.parts[0].x", Message: "is an unknown field"}}
	shippedField := workload.Errorf(workload.FailedPrecondition, "rejected_by_kubernetes", "the API server refuses it")
	shippedField.Violations = []workload.Violation{{Field: "spec.restartPolicy", Message: "FieldValueForbidden"}}
	patched := func(err error) func(*unstructured.Unstructured) error {
		return func(object *unstructured.Unstructured) error {
			if _, is, _ := unstructured.NestedString(object.Object, "spec", "runtimeClassName"); is {
				return err
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		layers []render.Layer
		answer func(*unstructured.Unstructured) error
		want   string
	}{
		"nothing":  {files, of("", nil), ""},
		"the Role": {files, of("Thing", errors.New("the Role lets the runner create no Thing")), "mine/more.yaml:6: the cluster would refuse the Thing: the Role lets the runner create no Thing"},
		"fields": {
			files, of("Thing", faulty),
			"mine/more.yaml:10: the cluster would refuse the Thing: spec.size FieldValueTypeInvalid\nmine/more.yaml:12: the cluster would refuse the Thing: spec.parts[0].x is an unknown field",
		},
		"any Secret, of a request that has some": {patch, of("Secret", errors.New("no")), ""},
		"a Secret where none was": {
			files, of("Secret", errors.New("no")), "mine/more.yaml:15: the cluster would refuse the Secret: no",
		},
		"the patched Pod":                    {patch, patched(errors.New("no such\nclass")), "mine/pod.yaml:1: the cluster would refuse the Pod: no such class"},
		"a shipped field of the patched Pod": {patch, patched(shippedField), "mine/pod.yaml:1: the cluster would refuse the Pod: spec.restartPolicy FieldValueForbidden"},
		"any Pod":                            {patch, of("Pod", errors.New("no")), ""},
		"any Pod, and there is no layer":     {nil, of("Pod", errors.New("no")), ""},
		"any Pod, and a Thing of the file":   {files, func(*unstructured.Unstructured) error { return errors.New("no") }, "mine/more.yaml:1: the cluster would refuse the ConfigMap: no\nmine/more.yaml:6: the cluster would refuse the Thing: no\nmine/more.yaml:15: the cluster would refuse the Secret: no"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &asked{answer: c.answer}
			_, err := (&Probe{Suite: suite, DryRun: cluster.dryRun}).Probe(t.Context(), c.layers)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDryRunIsBounded, also for a catalog of many flavors, and leaves out no kind.
func TestDryRunIsBounded(t *testing.T) {
	suite, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	suite.Config.Templates.AllowedKinds = []string{"v1 ConfigMap", "a.example/v1 Thing"}
	suite.Config.NetworkPolicy.Enabled = true
	text := "flavors:\n"
	for i := range 30 {
		text += fmt.Sprintf("- {name: f%d, resources: {limitsCpu: \"1\"}}\n", i)
	}
	var faults []catalog.Fault
	if suite.Catalog, faults = catalog.Parse([]byte(text)); len(faults) > 0 {
		t.Fatal(faults)
	}
	cluster := &asked{answer: func(*unstructured.Unstructured) error { return nil }}
	if _, err := (&Probe{Suite: suite, DryRun: cluster.dryRun}).Probe(t.Context(), []render.Layer{{Name: "mine", Files: map[string]string{"more.yaml": companions}, Values: map[string]any{"size": 1}}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Pod workload-ID", "ConfigMap workload-ID", "Thing workload-ID-thing", "NetworkPolicy workload-ID",
		"Secret workload-ID-inline-files", "Secret workload-ID-pull", "PersistentVolumeClaim trial-ID", "Secret workload-ID-of-flavor",
		"Pod workload-ID", "Pod workload-ID",
	}
	if diff := cmp.Diff(want, cluster.names); diff != "" {
		t.Errorf("it asks for (-want +got):\n%s", diff)
	}
}

func TestSteps(t *testing.T) {
	for path, want := range map[string][]any{
		"spec":                            {"spec"},
		"spec.containers[0].env[12].name": {"spec", "containers", 0, "env", 12, "name"},
		"metadata.labels[a.b/c]":          {"metadata", "labels", "a.b/c"},
		"metadata.labels[a.b/c].d":        {"metadata", "labels", "a.b/c", "d"},
		"spec[0][1]":                      {"spec", 0, 1},
		"":                                nil,
		"spec[":                           {"spec", ""},
		"spec.":                           {"spec"},
	} {
		if diff := cmp.Diff(want, steps(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
