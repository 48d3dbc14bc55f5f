package overrides

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"

	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/lint"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
)

// Probe tries layers on every golden case and on all that the catalog offers,
// and on the cluster, without making anything.
type Probe struct {
	// Suite holds the shipped templates, the catalog and the settings.
	Suite golden.Suite
	// DryRun asks the cluster whether it would take a Pod. It returns nil also
	// where the cluster cannot say.
	DryRun func(ctx context.Context, pod *unstructured.Unstructured) error
}

// maxFindings bounds what a rejection tells, in lines.
const maxFindings = 20

// Probe implements Prober.
func (p *Probe) Probe(ctx context.Context, layers []render.Layer) (*engine.Engine, error) {
	suite := p.Suite
	suite.Layers = layers
	level := api.Level("") // the seal has what the settings allow
	if suite.Config.Security.Profile == config.ProfileRestricted {
		level = api.LevelRestricted
	}
	report, err := lint.Run(lint.Options{Suite: suite, Level: level})
	if err != nil {
		return nil, err
	}
	if len(report.Findings) > 0 {
		lines := make([]string, 0, maxFindings+1)
		for i, f := range report.Findings {
			if i == maxFindings {
				lines = append(lines, fmt.Sprintf("and %d more", len(report.Findings)-maxFindings))
				break
			}
			lines = append(lines, f.String())
		}
		return nil, errors.New(strings.Join(lines, "\n"))
	}
	e, err := engine.New(engine.Options(suite))
	if err != nil {
		return nil, err
	}
	if len(layers) == 0 {
		return e, nil // what ships is no edit, whatever the cluster thinks of it
	}
	where, refused := p.tried(ctx, e)
	if refused == nil {
		return e, nil
	}
	shipped, err := engine.New(engine.Options(p.Suite))
	if err != nil {
		return nil, err
	}
	if _, also := p.tried(ctx, shipped); also != nil {
		return e, nil // it is not about the layers: the cluster takes no Pod now
	}
	return nil, fmt.Errorf("%s: the cluster would refuse the Pod: %w", where, refused)
}

// tried puts a bare Pod of e to the cluster. where is its place in the templates.
func (p *Probe) tried(ctx context.Context, e *engine.Engine) (where string, refused error) {
	_, manifests, err := e.Render(&runnerv1.StartWorkloadRequest{
		WorkloadId: uuid.NewString(), Main: &runnerv1.ContainerSpec{Image: "busybox"},
	})
	if err != nil {
		return "", err
	}
	return manifests.Where(manifests.Pod), p.DryRun(ctx, manifests.Pod)
}
