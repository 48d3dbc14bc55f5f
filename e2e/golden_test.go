//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/request"
)

// TestGolden starts every golden case that has manifests: the Pod that the API
// server then has holds all that the golden file says, and its fields are ours.
func TestGolden(t *testing.T) {
	const root = "../testdata/cases"
	r := startRunner(t, newNamespace(t))
	cordon(t, r.namespace)
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
		started++
		t.Run(filepath.Base(dir), func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, golden.RequestFile))
			if err != nil {
				t.Fatal(err)
			}
			req, err := request.Unmarshal(data)
			if err != nil {
				t.Fatal(err)
			}
			r.start(t, req)
			pod := r.pod(t, req.GetWorkloadId())
			ours := slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
				return f.Manager == "k8s-runner" && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.String(), "f:containers")
			})
			if !ours {
				t.Errorf("no field is managed by us: %v", pod.ManagedFields)
			}
			var want map[string]any
			if err := yaml.Unmarshal(expected, &want); err != nil {
				t.Fatal(err)
			}
			got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
			if err != nil {
				t.Fatal(err)
			}
			for _, difference := range missing("", want, got) {
				t.Error(difference)
			}
		})
	}
	if started == 0 {
		t.Error("no case has manifests")
	}
}

// missing lists what of want is not in got. Fields that only got has were
// filled in by the API server.
func missing(path string, want, got any) []string {
	switch path { // What a typed client drops, and what differs in a real start
	case ".apiVersion", ".kind", ".metadata.namespace", ".metadata.annotations.agyn.io/templates-digest":
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
		if len(list) != len(want) {
			return []string{fmt.Sprintf("%s has %d items, not %d", path, len(list), len(want))}
		}
		var out []string
		for i := range want {
			out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), want[i], list[i])...)
		}
		return out
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
	}
	return nil
}
