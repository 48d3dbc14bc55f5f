//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// goldenRoot is the folder of the golden cases.
const goldenRoot = "../testdata/cases"

// TestGolden starts every golden case that has manifests: the objects that the
// API server then has hold all that the golden file says, and their fields are
// ours. Its layers and its own templates are laid as an operator does that, with
// ConfigMaps, while the runner runs.
func TestGolden(t *testing.T) {
	ns, edited := newNamespace(t), newNamespace(t)
	plain, layered := startRunner(t, ns), startRunner(t, edited)
	operator, classes := newOperator(t, edited), newClasses(t)
	cordon(t, ns.name)
	cases, err := golden.Cases(os.DirFS(goldenRoot))
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for _, name := range cases {
		dir := filepath.Join(goldenRoot, name)
		expected, err := os.ReadFile(filepath.Join(dir, golden.ManifestFile))
		if os.IsNotExist(err) {
			continue // a case of an error
		}
		started++
		t.Run(name, func(t *testing.T) {
			r, o, maps := plain, operator, configMaps(t, name)
			if len(maps) > 0 {
				r = layered
			}
			if flags := flagsOf(dir); len(flags) > 0 {
				t.Parallel() // with nothing in common but the classes
				own := newNamespace(t, rule("", "configmaps", "create", "patch"), rule("", "services", "create", "patch"))
				r, o = startRunner(t, own, flags...), newOperator(t, own)
			}
			if len(maps) > 0 {
				classes.of(t, barePod(t, name))
				defer o.layCase(t, name, maps)()
			}
			r.compare(t, dir, expected, classes)
		})
	}
	if started < 30 {
		t.Errorf("only %d cases were started", started)
	}
}

// flagsOf are those of a runner with the settings and the catalog of a case.
func flagsOf(dir string) []string {
	var flags []string
	if file := filepath.Join(dir, golden.ConfigFile); exists(file) {
		flags = append(flags, "--config", file)
	}
	if file := filepath.Join(dir, golden.CatalogFile); exists(file) {
		flags = append(flags, "--catalog-path", file)
	}
	return flags
}

// compare starts the case in dir and compares each object with expected. What it
// made is gone afterwards.
func (r *runner) compare(t *testing.T, dir string, expected []byte, classes *classes) {
	data, err := os.ReadFile(filepath.Join(dir, golden.RequestFile))
	if err != nil {
		t.Fatal(err)
	}
	req, err := request.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	here := strings.ReplaceAll(string(expected), "."+golden.Namespace+".svc", "."+r.namespace+".svc")
	for _, doc := range strings.Split(here, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatal(err)
		}
		encodeStrings(object)
		objects = append(objects, object)
	}
	classes.of(t, objects[0])
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

// encodeStrings does to a Secret what the API server does.
func encodeStrings(object map[string]any) {
	texts, _ := object["stringData"].(map[string]any)
	if len(texts) == 0 {
		return
	}
	data, _ := object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for k, v := range texts {
		data[k] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(v)))
	}
	object["data"] = data
	delete(object, "stringData")
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
