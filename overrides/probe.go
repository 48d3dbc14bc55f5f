package overrides

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"

	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/lint"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
)

// Probe tries layers on every golden case and on all that the catalog offers,
// and on the cluster, without making anything.
type Probe struct {
	// Suite holds the shipped templates, the catalog and the settings.
	Suite golden.Suite
	// DryRun asks the cluster whether it would take an object. It returns nil also
	// where the cluster cannot say.
	DryRun func(ctx context.Context, object *unstructured.Unstructured) error
}

const (
	// maxFindings bounds what a rejection tells, in lines.
	maxFindings = 20
	// maxFailed bounds how many requests have to fail for it.
	maxFailed = 5
)

// Probe implements Prober.
func (p *Probe) Probe(ctx context.Context, layers []render.Layer) (*engine.Engine, error) {
	suite := p.Suite
	suite.Layers = layers
	level := api.Level("") // the seal has what the settings allow
	if suite.Config.Security.Profile == config.ProfileRestricted {
		level = api.LevelRestricted
	}
	report, err := lint.Run(lint.Options{Suite: suite, Level: level, MaxFailed: maxFailed})
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range report.Findings {
		lines = append(lines, f.String())
	}
	if err := joined(lines); err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Options(suite))
	if err != nil {
		return nil, err
	}
	if len(layers) == 0 {
		return e, nil // what ships is no edit, whatever the cluster thinks of it
	}
	if err := p.try(ctx, e); err != nil {
		return nil, err
	}
	return e, nil
}
