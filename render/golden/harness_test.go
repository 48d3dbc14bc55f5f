package golden_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agynio/k8s-runner/render/golden"
)

// caseDir returns a copy of a golden case that a test may change.
func caseDir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// difference renders the case in dir and returns what Check finds.
func difference(t *testing.T, dir string) string {
	t.Helper()
	result, err := shipped(t).Render(os.DirFS(filepath.Dir(dir)), filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	diff, err := golden.Check(os.DirFS(filepath.Dir(dir)), filepath.Base(dir), result)
	if err != nil {
		t.Fatal(err)
	}
	return diff
}

// TestCheckFindsDifferences changes what cases expect.
func TestCheckFindsDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		from   string
		change func(t *testing.T, dir string)
		found  string // in the difference; empty if there is to be none
	}{
		"nothing":             {"minimal", func(*testing.T, string) {}, ""},
		"nothing in an error": {"error-names", func(*testing.T, string) {}, ""},
		"a changed value": {"minimal", func(t *testing.T, dir string) {
			file := filepath.Join(dir, golden.ManifestFile)
			write(t, file, strings.Replace(read(t, file), "restartPolicy: Never", "restartPolicy: Always", 1))
		}, "restartPolicy: Always"},
		"a missing line": {"minimal", func(t *testing.T, dir string) {
			file := filepath.Join(dir, golden.ManifestFile)
			write(t, file, strings.Replace(read(t, file), "  restartPolicy: Never\n", "", 1))
		}, "restartPolicy: Never"},
		"a line more": {"minimal", func(t *testing.T, dir string) {
			file := filepath.Join(dir, golden.ManifestFile)
			write(t, file, read(t, file)+"  more: true\n")
		}, "more: true"},
		"no expectation": {"minimal", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, golden.ManifestFile)); err != nil {
				t.Fatal(err)
			}
		}, golden.ManifestFile},
		"no expected error": {"error-names", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, golden.ErrorFile)); err != nil {
				t.Fatal(err)
			}
		}, golden.ErrorFile},
		"a stale error": {"minimal", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, golden.ErrorFile), "old\n")
		}, golden.ErrorFile},
		"a stale manifest": {"error-names", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, golden.ManifestFile), "kind: Pod\n")
		}, golden.ManifestFile},
		"another request": {"minimal", func(t *testing.T, dir string) {
			file := filepath.Join(dir, golden.RequestFile)
			write(t, file, read(t, file)+"labels: {more: label}\n")
		}, "more: label"},
		"a request that is refused": {"minimal", func(t *testing.T, dir string) {
			file := filepath.Join(dir, golden.RequestFile)
			write(t, file, read(t, file)+"labels: {more: 'not a label'}\n")
		}, "invalid_label"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := caseDir(t, c.from)
			c.change(t, dir)
			diff := difference(t, dir)
			if (c.found == "") != (diff == "") || !strings.Contains(diff, c.found) {
				t.Errorf("the difference is %q", diff)
			}
			// Whatever it was, updating settles it.
			result, err := shipped(t).Render(os.DirFS(filepath.Dir(dir)), filepath.Base(dir))
			if err != nil {
				t.Fatal(err)
			}
			if err := golden.Update(dir, result); err != nil {
				t.Fatal(err)
			}
			if diff := difference(t, dir); diff != "" {
				t.Errorf("after the update the difference is %q", diff)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
				t.Errorf("after the update the case has %v (%v)", files, err)
			}
		})
	}
}

// TestRenderRefusesCases has cases that cannot be read.
func TestRenderRefusesCases(t *testing.T) {
	for name, text := range map[string]string{
		"no comment":       "main: {image: a}\n",
		"a comment later":  "main: {image: a}\n# why\n",
		"an empty line":    "\n# why\nmain: {image: a}\n",
		"nothing":          "",
		"an unknown field": "# why\nmains: {image: a}\n",
		"not YAML":         "# why\nmain: {\n",
		"two requests":     "# why\nmain: {image: a}\n---\nmain: {image: b}\n",
		"a comment only":   "# why\n",
		"no workload_id":   "# why\nmain: {image: a}\n",
		"no file":          "-",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, golden.RequestFile)
			if text != "-" {
				write(t, file, text)
			}
			result, err := shipped(t).Render(os.DirFS(filepath.Dir(dir)), filepath.Base(dir))
			if err == nil {
				t.Fatalf("it renders as %+v", result)
			}
			if !strings.Contains(err.Error(), golden.RequestFile) || !strings.Contains(err.Error(), filepath.Base(dir)) {
				t.Errorf("the error does not name the case and the file: %v", err)
			}
		})
	}
}

func TestCasesFindsFolders(t *testing.T) {
	dir := t.TempDir()
	if cases, err := golden.Cases(os.DirFS(dir)); err != nil || len(cases) > 0 {
		t.Errorf("an empty folder has the cases %v (%v)", cases, err)
	}
	write(t, filepath.Join(dir, "notes.txt"), "no folder\n")
	for _, name := range []string{"b", "a"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, golden.RequestFile), "# why\n")
	}
	cases, err := golden.Cases(os.DirFS(dir))
	if err != nil || !slices.Equal(cases, []string{"a", "b"}) {
		t.Errorf("the cases are %v (%v)", cases, err)
	}
	// One whose file has the wrong name must not be passed over.
	if err := os.Mkdir(filepath.Join(dir, "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "c", "request.yml"), "# why\n")
	if cases, err := golden.Cases(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), "c is no case") {
		t.Errorf("the cases are %v (%v)", cases, err)
	}
}

// TestEveryCaseSaysOneThing guards against a folder that no test reads.
func TestEveryCaseSaysOneThing(t *testing.T) {
	cases, err := golden.Cases(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != len(cases) {
		t.Errorf("of %d folders %d are cases", len(folders), len(cases))
	}
	for _, name := range cases {
		expectations := 0
		files, err := os.ReadDir(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			switch f.Name() {
			case golden.ManifestFile, golden.ErrorFile:
				expectations++
			case golden.RequestFile, golden.ConfigFile, golden.CatalogFile, golden.TemplateFolder, golden.LayerFolder:
			default:
				t.Errorf("%s has %s, which nothing reads", name, f.Name())
			}
		}
		if expectations != 1 {
			t.Errorf("%s expects %d things", name, expectations)
		}
	}
}
