//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/request"
)

// TestGolden starts every golden case that has manifests: the objects that the
// API server then has hold all that the golden file says, and their fields are
// ours.
func TestGolden(t *testing.T) {
	const root = "../testdata/cases"
	ns := newNamespace(t)
	plain := startRunner(t, ns)
	cordon(t, ns.name)
	cases, err := golden.Cases(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for _, name := range cases {
		dir := filepath.Join(root, name)
		expected, err := os.ReadFile(filepath.Join(dir, golden.ManifestFile))
		if os.IsNotExist(err) {
			continue // a case of an error
		}
		t.Run(name, func(t *testing.T) {
			if exists(filepath.Join(dir, golden.TemplateFolder)) || exists(filepath.Join(dir, golden.LayerFolder)) {
				t.Skip("the case has templates of its own, and this service renders with the shipped ones")
			}
			started++
			r := plain
			var flags []string
			if file := filepath.Join(dir, golden.ConfigFile); exists(file) {
				flags = append(flags, "--config", file)
			}
			if file := filepath.Join(dir, golden.CatalogFile); exists(file) {
				flags = append(flags, "--catalog-path", file)
			}
			if len(flags) > 0 {
				r = startRunner(t, ns, flags...)
			}
			r.compare(t, dir, expected)
		})
	}
	if started < 30 {
		t.Errorf("only %d cases were started", started)
	}
}

// compare starts the case in dir and compares each object with expected. What it
// made is gone afterwards.
func (r *runner) compare(t *testing.T, dir string, expected []byte) {
	data, err := os.ReadFile(filepath.Join(dir, golden.RequestFile))
	if err != nil {
		t.Fatal(err)
	}
	req, err := request.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for _, doc := range strings.Split(string(expected), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	makeClasses(t, objects[0])
	r.start(t, req)
	defer func() {
		if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: req.GetWorkloadId(), Force: true, RemoveVolumes: true}); err != nil {
			t.Errorf("removing it: %v", err)
		}
	}()
	for _, want := range objects {
		got := r.object(t, want)
		ours := slices.ContainsFunc(got.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "k8s-runner" })
		if !ours {
			t.Errorf("%s: no field is managed by us: %v", got.GetKind(), got.GetManagedFields())
		}
		for _, difference := range missing("", want, got.Object) {
			t.Errorf("%s: %s", got.GetKind(), difference)
		}
	}
}

// object reads what the API server has of want.
func (r *runner) object(t *testing.T, want map[string]any) *unstructured.Unstructured {
	t.Helper()
	client, err := dynamic.NewForConfig(suite.config)
	if err != nil {
		t.Fatal(err)
	}
	wanted := &unstructured.Unstructured{Object: want}
	resource, _ := meta.UnsafeGuessKindToResource(wanted.GroupVersionKind())
	got, err := client.Resource(resource).Namespace(r.namespace).Get(t.Context(), wanted.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// makeClasses makes the classes that a Pod names, without which it is refused.
func makeClasses(t *testing.T, pod map[string]any) {
	t.Helper()
	spec, _ := pod["spec"].(map[string]any)
	none := metav1.CreateOptions{}
	if name, ok := spec["runtimeClassName"].(string); ok {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "alt"}
		if _, err := suite.admin.NodeV1().RuntimeClasses().Create(t.Context(), class, none); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	if name, ok := spec["priorityClassName"].(string); ok {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 10}
		if _, err := suite.admin.SchedulingV1().PriorityClasses().Create(t.Context(), class, none); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// missing lists what of want is not in got. Fields that only got has were
// filled in by the API server.
func missing(path string, want, got any) []string {
	switch path { // what differs in a real start
	case ".metadata.namespace", ".metadata.annotations.agyn.io/templates-digest":
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		var out []string
		m, _ := got.(map[string]any)
		for k, v := range want {
			other, there := m[k]
			if !there && v == "" { // the API server leaves out empty strings
				continue
			}
			out = append(out, missing(path+"."+k, v, other)...)
		}
		return out
	case []any:
		list, _ := got.([]any)
		// The API server adds tolerations of its own at the end.
		if len(list) != len(want) && (path != ".spec.tolerations" || len(list) < len(want)) {
			return []string{fmt.Sprintf("%s has %d items, not %d", path, len(list), len(want))}
		}
		var out []string
		for i := range want {
			out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), want[i], list[i])...)
		}
		return out
	}
	if fmt.Sprint(want) != fmt.Sprint(got) && !sameAmount(path, want, got) {
		return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
	}
	return nil
}

// sameAmount: the API server writes a quantity in its own way.
func sameAmount(path string, want, got any) bool {
	a, err := resource.ParseQuantity(fmt.Sprint(want))
	b, otherErr := resource.ParseQuantity(fmt.Sprint(got))
	return strings.Contains(path, ".resources.") && err == nil && otherErr == nil && a.Cmp(b) == 0
}
