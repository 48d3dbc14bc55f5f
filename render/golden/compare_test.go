package golden_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agynio/k8s-runner/render/golden"
)

// TestDifferenceIsReadable wants the lines that changed with a few around them.
func TestDifferenceIsReadable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "\n")
	write(t, filepath.Join(dir, golden.ManifestFile), strings.Join(lines, ""))
	lines[4] = "five\n"
	diff, err := golden.Check(os.DirFS(filepath.Dir(dir)), "a", golden.Result{Manifests: strings.Join(lines, "")})
	if err != nil {
		t.Fatal(err)
	}
	const want = `--- a/expected.yaml
+++ a/expected.yaml (rendered)
@@ -2,7 +2,7 @@
 2
 3
 4
-5
+five
 6
 7
 8
`
	if diff != want {
		t.Errorf("the difference is\n%s", diff)
	}
}

// TestBroken tells what is about the templates from what is about the request.
func TestBroken(t *testing.T) {
	for _, name := range []string{"minimal", "error-names"} {
		if result, err := shipped(t).Render(os.DirFS(root), name); err != nil || result.Broken {
			t.Errorf("%s is broken: %+v (%v)", name, result, err)
		}
	}
	for _, template := range []string{"{{ no }}", "{{ .No }}"} {
		suite := shipped(t)
		suite.Templates["pod.yaml"] = template
		result, err := suite.Render(os.DirFS(root), "minimal")
		if err != nil || !result.Broken || !strings.Contains(result.Err, "pod.yaml:1") {
			t.Errorf("%s: %+v (%v)", template, result, err)
		}
	}
}
