package layers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/layers"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/workload"
)

// TestValues: later ConfigMaps win, map by map, and later keys of one likewise. A
// list of values replaces the one below, also one that has the name of a list of a
// Pod, which a patch would add to.
func TestValues(t *testing.T) {
	values := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{workload.LabelTemplates: workload.TemplateValues}},
			Data:       data,
		}
	}
	all, err := layers.Of([]*corev1.ConfigMap{
		values("b", map[string]string{"v.yaml": "pool: {b: two}\ntolerations: [{key: two}]\n"}),
		values("a", map[string]string{"1.yaml": "pool: {a: zero}\ntolerations: [{key: zero}]\n", "2.yaml": "pool: {a: one}\ntolerations: [{key: one}]\n"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := render.Compile(map[string]string{"pod.yaml": `apiVersion: v1
kind: Pod
spec:
  nodeSelector: {{ .Values.pool }}
  tolerations: {{ .Values.tolerations }}
  containers: [{name: main, image: a}]
`}, all...)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := set.Render(&workload.Spec{ID: "x", Main: workload.Container{Name: "main"}}, &catalog.Plan{}, render.Settings{Namespace: "n"})
	if err != nil {
		t.Fatal(err)
	}
	spec := manifests.Pod.Object["spec"].(map[string]any)
	pool, tolerations := spec["nodeSelector"].(map[string]any), spec["tolerations"].([]any)
	if len(pool) != 2 || pool["a"] != "one" || pool["b"] != "two" || len(tolerations) != 1 {
		t.Errorf("the values are %v and %v", pool, tolerations)
	}
}

// TestValuesFaults: an operator finds the line.
func TestValuesFaults(t *testing.T) {
	for text, want := range map[string]string{
		"a: [\n":       "v/values.yaml:1: did not find expected node content",
		"a: 1\na: 2\n": `v/values.yaml:2: key "a" already set in map`,
		"x\n":          "v/values.yaml: is no mapping of names to values",
	} {
		m := &corev1.ConfigMap{Data: map[string]string{"values.yaml": text}}
		m.Name, m.Labels = "v", map[string]string{workload.LabelTemplates: workload.TemplateValues}
		if _, err := layers.Of([]*corev1.ConfigMap{m}); err == nil || err.Error() != want {
			t.Errorf("%q is refused with %v", text, err)
		}
	}
}
