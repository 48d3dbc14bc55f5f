//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/agynio/k8s-runner/engine"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/workload"
)

// noEdits are the cases whose templates are rejected as an edit, and in which words:
// they render only requests that have what they ask for, where an edit has to
// render every request, or make what no cluster takes.
func noEdits() map[string]string {
	return map[string]string{
		"layer-directive-as-data": "the cluster would refuse the Pod: spec.nodeSelector",
		"layer-kinds":             `"team"`,
		"template-objects":        `"motd"`,
		"template-quoted-value":   `"note"`,
	}
}

// configMaps are those that lay what the golden case called name brings: its
// layers as they are, its templates as files.
func configMaps(t *testing.T, name string) []*corev1.ConfigMap {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(goldenRoot, name, golden.LayerFolder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var maps []*corev1.ConfigMap
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(data), "\n---\n") {
			m := &corev1.ConfigMap{}
			if err := yaml.UnmarshalStrict([]byte(doc), m); err != nil {
				t.Fatal(err)
			}
			maps = append(maps, m)
		}
	}
	own := map[string]string{}
	for _, file := range readCase(t, name).Own {
		text, err := os.ReadFile(filepath.Join(goldenRoot, name, golden.TemplateFolder, file))
		if err != nil {
			t.Fatal(err)
		}
		own[file] = string(text)
	}
	if len(own) > 0 {
		labels := map[string]string{workload.LabelTemplates: workload.TemplateFiles}
		maps = append(maps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own", Labels: labels}, Data: own})
	}
	return maps
}

// layCase lays the ConfigMaps of the case called name, and returns what takes
// them away.
func (o *operator) layCase(t *testing.T, name string, maps []*corev1.ConfigMap) (remove func()) {
	t.Helper()
	var edits []edit
	remove = func() {
		for _, e := range edits {
			o.remove(t, e.name)
		}
	}
	for _, m := range maps {
		edits = append(edits, o.apply(t, m))
	}
	words, isNone := noEdits()[name]
	if !isNone {
		o.loaded(t, edits...)
		return remove
	}
	defer remove()
	reason := o.rejected(t, edits[0])
	if !strings.Contains(reason, words) {
		t.Fatalf("it is rejected with %s", reason)
	}
	t.Skip("the case is no edit that counts: " + reason)
	return nil
}

// barePod is what the templates of a case make of a request of nothing but an
// image, with which an edit is tried on the cluster.
func barePod(t *testing.T, name string) map[string]any {
	t.Helper()
	e, err := engine.New(readCase(t, name).Options)
	if err != nil {
		t.Fatal(err)
	}
	bare := sleeper()
	bare.Main = &runnerv1.ContainerSpec{Image: "busybox"}
	_, manifests, err := e.Render(bare)
	if err != nil {
		return nil
	}
	return manifests.Pod.Object
}

func readCase(t *testing.T, name string) *golden.Case {
	t.Helper()
	shipped, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	c, err := shipped.Read(os.DirFS(goldenRoot), name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// classes makes the classes that Pods name, without which they are refused. Those
// that were not there are gone after its test.
type classes struct{ test *testing.T }

func newClasses(t *testing.T) *classes { return &classes{t} }

// of makes those of pod, for the test t.
func (c *classes) of(t *testing.T, pod map[string]any) {
	t.Helper()
	spec, _ := pod["spec"].(map[string]any)
	if name, ok := spec["runtimeClassName"].(string); ok {
		c.runtime(t, name)
	}
	if name, ok := spec["priorityClassName"].(string); ok {
		c.priority(t, name)
	}
}

func (c *classes) runtime(t *testing.T, name string) {
	t.Helper()
	all := suite.admin.NodeV1().RuntimeClasses()
	_, err := all.Create(t.Context(), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "alt"}, metav1.CreateOptions{})
	c.made(t, err, name, all.Delete)
}

func (c *classes) priority(t *testing.T, name string) {
	t.Helper()
	all := suite.admin.SchedulingV1().PriorityClasses()
	_, err := all.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 10}, metav1.CreateOptions{})
	c.made(t, err, name, all.Delete)
}

func (c *classes) made(t *testing.T, err error, name string, remove func(context.Context, string, metav1.DeleteOptions) error) {
	t.Helper()
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Fatalf("making the class %s: %v", name, err)
	}
	c.test.Cleanup(func() {
		if err := remove(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			c.test.Errorf("deleting the class %s: %v", name, err)
		}
	})
}
