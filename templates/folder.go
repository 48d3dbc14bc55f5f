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
	texts, objects, err := folder(dir)
	if err == nil && objects == 0 {
		err = errors.New(dir + " has no template that makes a Pod; 'k8s-runner templates export " + dir + "' writes the shipped ones")
	}
	return texts, err
}

// Laid returns the templates under a folder of layers: those of dir if it has
// any, else the shipped ones.
func Laid(dir string) (map[string]string, error) {
	texts, _, err := folder(dir)
	if err == nil && len(texts) == 0 {
		return Shipped()
	}
	return texts, err
}

func folder(dir string) (texts map[string]string, objects int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("listing the templates: %w", err)
	}
	texts = map[string]string{}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".tpl"}, path.Ext(name)) {
			continue
		}
		data, err := os.ReadFile(path.Join(dir, name))
		if err != nil {
			return nil, 0, fmt.Errorf("reading a template: %w", err)
		}
		texts[name] = string(data)
		if !strings.HasPrefix(name, "_") {
			objects++
		}
	}
	return texts, objects, nil
}
