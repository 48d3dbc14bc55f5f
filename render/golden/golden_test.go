package golden_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/templates"
)

var update = flag.Bool("update", false, "write what the cases render to instead of comparing")

const root = "../../testdata/cases"

// TestCases renders every golden case with the shipped templates.
func TestCases(t *testing.T) {
	set := shipped(t)
	cases, err := golden.Cases(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range cases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			result, err := golden.Render(dir, set)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := golden.Update(dir, result); err != nil {
					t.Fatal(err)
				}
				return
			}
			diff, err := golden.Check(dir, result)
			if err != nil {
				t.Fatal(err)
			}
			if diff != "" {
				t.Errorf("the rendered manifests differ; make golden accepts them\n%s", diff)
			}
		})
	}
}

func shipped(t *testing.T) *render.Set {
	t.Helper()
	files, err := templates.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	set, err := render.Compile(files)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
