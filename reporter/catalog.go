package reporter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/catalog"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
	"github.com/agynio/k8s-runner/workload"
)

// ReportCatalog tells the platform what the runner offers, and tries for as long as
// limit says. capabilities are those that work. A platform that is too old for it is
// no error.
func (g *Gateway) ReportCatalog(ctx context.Context, c *catalog.Catalog, capabilities []string, limit time.Duration, log *logrus.Logger) error {
	err := insist(ctx, limit, log, "reporting the catalog", func(ctx context.Context) error {
		return g.reportCatalog(ctx, catalogOf(c, capabilities))
	})
	var f *failure
	switch {
	case errors.As(err, &f) && f.verdict == tooOld:
		log.Warn("this platform takes no catalogs; it does not know what the runner offers")
		return nil
	case errors.As(err, &f) && f.denied:
		return fmt.Errorf("the platform refuses the catalog: %w", err)
	}
	return err
}

func catalogOf(c *catalog.Catalog, capabilities []string) *runnersv1.ReportRunnerCatalogRequest {
	out := &runnersv1.ReportRunnerCatalogRequest{Capabilities: capabilities}
	for i := range c.Flavors {
		f := &c.Flavors[i]
		out.Flavors = append(out.Flavors, &runnersv1.FlavorEntry{
			Name: f.Name, Default: f.Default, Deprecated: f.Deprecated, Resources: resources(f.Resources),
		})
	}
	for _, s := range c.StorageClasses {
		out.StorageClasses = append(out.StorageClasses, &runnersv1.StorageClassEntry{Name: s.Name, Default: s.Default, Deprecated: s.Deprecated})
	}
	return out
}

func resources(r workload.Resources) *runnersv1.ComputeResources {
	return &runnersv1.ComputeResources{
		RequestsCpu: r.RequestsCPU, RequestsMemory: r.RequestsMemory, LimitsCpu: r.LimitsCPU, LimitsMemory: r.LimitsMemory,
	}
}
