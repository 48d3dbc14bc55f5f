package templates

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// Folder returns the texts of the templates in the folder dir by file name.
// They are the whole set: what the runner ships is not added. Files and
// folders beside *.yaml and *.tpl are left alone.
func Folder(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the templates: %w", err)
	}
	texts, objects := map[string]string{}, 0
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".tpl"}, path.Ext(name)) {
			continue
		}
		data, err := os.ReadFile(path.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("reading a template: %w", err)
		}
		texts[name] = string(data)
		if !strings.HasPrefix(name, "_") {
			objects++
		}
	}
	if objects == 0 {
		return nil, errors.New(dir + " has no template that makes a Pod; 'k8s-runner templates export " + dir + "' writes the shipped ones")
	}
	return texts, nil
}
