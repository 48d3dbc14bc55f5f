package render_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestIdioms renders what authors of templates write, testdata/idioms.
func TestIdioms(t *testing.T) {
	for name, files := range idioms(t) {
		t.Run(name, func(t *testing.T) {
			var want any
			if err := yaml.UnmarshalStrict([]byte(files["spec.yaml"]), &want); err != nil {
				t.Fatal(err)
			}
			delete(files, "spec.yaml")
			pod := renderPod(t, compile(t, files), specOf(t, someRequest))
			spec := pod.Object["spec"].(map[string]any)
			delete(spec, "automountServiceAccountToken") // the seal's
			if diff := cmp.Diff(want, asJSON(t, spec)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// idioms returns the files of each archive by its name.
func idioms(t testing.TB) map[string]map[string]string {
	t.Helper()
	archives, err := filepath.Glob("testdata/idioms/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no idioms (%v)", err)
	}
	sets := map[string]map[string]string{}
	for _, a := range archives {
		data, err := os.ReadFile(a)
		if err != nil {
			t.Fatal(err)
		}
		sets[filepath.Base(a)] = filesOf(string(data))
	}
	return sets
}

// asJSON makes numbers of v those of encoding/json, as yaml has them.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRenderLeavesItsInputAlone also covers functions of sprig that change
// their arguments, such as sortAlpha.
func TestRenderLeavesItsInputAlone(t *testing.T) {
	for name, files := range idioms(t) {
		delete(files, "spec.yaml")
		spec, untouched := specOf(t, someRequest), specOf(t, someRequest)
		if _, err := compile(t, files).Render(spec, noPlan, settings); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(untouched, spec); diff != "" {
			t.Errorf("%s changes the request (-before +after):\n%s", name, diff)
		}
	}
}
