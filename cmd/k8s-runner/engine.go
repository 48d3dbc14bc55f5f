package main

import (
	"errors"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	k8srunner "github.com/agynio/k8s-runner"
	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/overrides"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/templates"
)

// newStore returns the operator's templates over the shipped ones.
func newStore(c config.Config, offered *catalog.Catalog, reads kubernetes.Interface, writes dynamic.Interface, a *applier.Applier, meter overrides.Meter, log *logrus.Logger) (*overrides.Store, error) {
	files, err := templates.Shipped()
	if err != nil {
		return nil, err
	}
	namespace := c.Templates.Namespace
	if namespace == "" {
		namespace = c.Kube.Namespace
	}
	probe := &overrides.Probe{Suite: golden.Suite{Templates: files, Catalog: offered, Config: c}, DryRun: a.DryRun}
	events := applier.NewRecorder(writes, func(err error) { log.WithError(err).Warn("an operator is not told") })
	return overrides.New(reads, namespace, probe, events, meter, log)
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
