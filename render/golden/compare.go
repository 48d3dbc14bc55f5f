package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Check compares r with what the case called name of root expects and returns
// the difference as a unified diff, in which lines that start with - are
// expected and those with + rendered, or "" if there is none.
func Check(root fs.FS, name string, r Result) (string, error) {
	var diffs strings.Builder
	files := r.files()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		file, rendered := path.Join(name, file), files[file]
		expected, err := fs.ReadFile(root, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading what a case expects: %w", err)
		}
		// The first line, "diff a b", says no more than the next two.
		_, text, _ := strings.Cut(string(diff.Diff(file, expected, file+" (rendered)", []byte(rendered))), "\n")
		diffs.WriteString(text)
	}
	return diffs.String(), nil
}

// Update makes r what folder dir expects.
func Update(dir string, r Result) error {
	for name, text := range r.files() {
		file := filepath.Join(dir, name)
		if text == "" {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("updating a case: %w", err)
			}
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // not secret
			return fmt.Errorf("updating a case: %w", err)
		}
	}
	return nil
}

func (r Result) files() map[string]string {
	return map[string]string{ManifestFile: r.Manifests, ErrorFile: r.Err}
}
