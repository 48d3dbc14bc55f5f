// Package templates holds the templates that the runner ships. README.md is
// their contract: what they see and what they may print.
package templates

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed *.yaml *.tpl
var files embed.FS

// Readme is the contract.
//
//go:embed README.md
var Readme []byte

// Shipped returns the texts of the shipped templates by file name.
func Shipped() (map[string]string, error) { return read(files) }

func read(from fs.FS) (map[string]string, error) {
	entries, err := fs.ReadDir(from, ".")
	if err != nil {
		return nil, fmt.Errorf("listing templates: %w", err)
	}
	texts := make(map[string]string, len(entries))
	for _, e := range entries {
		data, err := fs.ReadFile(from, e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading template %s: %w", e.Name(), err)
		}
		texts[e.Name()] = string(data)
	}
	return texts, nil
}
