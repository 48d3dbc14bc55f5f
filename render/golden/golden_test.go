package golden_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/agynio/k8s-runner/render/golden"
)

var update = flag.Bool("update", false, "write what the cases render to instead of comparing")

const root = "../../testdata/cases"

// TestCases renders every golden case.
func TestCases(t *testing.T) {
	suite, all := shipped(t), os.DirFS(root)
	cases, err := golden.Cases(all)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := suite.Render(all, name)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := golden.Update(filepath.Join(root, name), result); err != nil {
					t.Fatal(err)
				}
				return
			}
			diff, err := golden.Check(all, name, result)
			if err != nil {
				t.Fatal(err)
			}
			if diff != "" {
				t.Errorf("the rendered manifests differ; make golden accepts them\n%s", diff)
			}
		})
	}
}

func shipped(t *testing.T) golden.Suite {
	t.Helper()
	suite, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return suite
}
