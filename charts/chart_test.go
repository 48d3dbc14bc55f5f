// Package charts tests the chart without a cluster: what helm makes of it is compared with
// golden files, is what Kubernetes knows, and is what the runner takes.
package charts

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the cases render to instead of comparing")

const (
	chart = "k8s-runner"
	cases = "../testdata/chart"
	// Of a case that is refused, and of one that is not.
	refusedFile, renderedFile = "expected.err", "expected.yaml"
)

// TestCases renders every golden case.
func TestCases(t *testing.T) {
	helm := findHelm(t)
	folders, err := filepath.Glob(filepath.Join(cases, "*", "values.yaml"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	for _, values := range folders {
		folder := filepath.Dir(values)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			rendered, refusal := render(t, helm, values)
			if *update {
				write(t, filepath.Join(folder, renderedFile), rendered)
				write(t, filepath.Join(folder, refusedFile), refusal)
			}
			for name, got := range map[string]string{renderedFile: rendered, refusedFile: refusal} {
				if diff := cmp.Diff(read(t, filepath.Join(folder, name)), got); diff != "" {
					t.Errorf("%s differs; make chart-golden accepts it (-expected +rendered):\n%s", name, diff)
				}
			}
			if refusal == "" {
				checkObjects(t, rendered)
			}
		})
	}
}

// TestLint has helm look at the chart with the values of an ordinary case.
func TestLint(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), findHelm(t), "lint", "--strict", "--quiet", chart, "-f", filepath.Join(cases, "minimal", "values.yaml")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// findHelm builds the pinned helm, once for all, and returns its path.
func findHelm(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../tools/helm/go.mod", "-n", "helm")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("building helm: %v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// render returns what helm makes of the chart with values, or why it refuses.
func render(t *testing.T, helm, values string) (rendered, refusal string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), helm, "template", "k8s-runner", chart, "--namespace", "agyn", "--kube-version", "1.37.2", "-f", values)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", inOrder(stderr.String())
	}
	return stdout.String(), ""
}

// inOrder sorts what the schema found, which helm tells in any order.
func inOrder(refusal string) string {
	refusal, _, _ = strings.Cut(refusal, "\n\n")
	lines := strings.SplitAfter(refusal+"\n", "\n")
	findings := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "- at ") })
	if findings >= 0 {
		slices.SortFunc(lines[findings:], func(a, b string) int { // by path, without the indent
			return strings.Compare(strings.TrimLeft(a, " "), strings.TrimLeft(b, " "))
		})
	}
	return strings.Join(lines, "")
}

// write writes a file, or removes it if there is nothing to write.
func write(t *testing.T, path, text string) {
	t.Helper()
	var err error
	if text == "" {
		if err = os.Remove(path); os.IsNotExist(err) {
			err = nil
		}
	} else {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file's text; none is empty.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// TestCasesSayWhy: each case begins with a comment that says why it exists.
func TestCasesSayWhy(t *testing.T) {
	err := fs.WalkDir(os.DirFS(cases), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "values.yaml" && !strings.HasPrefix(read(t, filepath.Join(cases, path)), "# ") {
			t.Errorf("%s does not begin with a comment", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
