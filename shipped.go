// Package k8srunner holds what the runner ships beside its code and templates:
// the catalog and the golden cases.
package k8srunner

import "embed"

// Catalog is catalog.yaml.
//
//go:embed catalog.yaml
var Catalog []byte

// Cases holds the golden cases, each a folder of testdata/cases. Among their
// templates are files that start with an underscore.
//
//go:embed all:testdata/cases
var Cases embed.FS
