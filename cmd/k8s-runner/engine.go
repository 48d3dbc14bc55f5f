package main

import (
	"errors"
	"fmt"

	k8srunner "github.com/agynio/k8s-runner"
	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/templates"
)

// newEngine returns an engine of the shipped templates and the configured
// catalog.
func newEngine(c config.Config) (*engine.Engine, error) {
	files, err := templates.Shipped()
	if err != nil {
		return nil, err
	}
	offered, err := loadCatalog(c.Catalog.Path)
	if err != nil {
		return nil, fmt.Errorf("catalog.path (environment CATALOG_PATH): %w", err)
	}
	return engine.New(engine.Options{Templates: files, Catalog: offered, Config: c})
}

// loadCatalog returns the catalog at path, or if that is empty the shipped one.
func loadCatalog(path string) (*catalog.Catalog, error) {
	if path != "" {
		return readCatalog(path)
	}
	c, faults := catalog.Parse(k8srunner.Catalog)
	if len(faults) > 0 {
		return nil, errors.New("the shipped catalog has a fault")
	}
	return c, nil
}
