// Package engine takes a request all the way to its manifests: validation, the
// catalog, rendering. The server, the command line and the golden cases use
// the same one.
package engine

import (
	"fmt"

	"github.com/agynio/k8s-runner/config"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

// Options are what an engine is made of.
type Options struct {
	// Templates are texts by file name.
	Templates map[string]string
	// Config holds the operator's settings.
	Config config.Config
}

// Engine renders requests. It never changes, and it is safe for concurrent use.
type Engine struct {
	set      *render.Set
	settings render.Settings
}

// New compiles the templates. Its error names the file and the line.
func New(o Options) (*Engine, error) {
	set, err := render.Compile(o.Templates)
	if err != nil {
		return nil, fmt.Errorf("compiling the templates: %w", err)
	}
	return &Engine{
		set:      set,
		settings: render.Settings{Namespace: o.Config.Kube.Namespace, FSGroup: o.Config.Workload.FSGroup},
	}, nil
}

// Render returns what req asks for and the manifests of it. A *workload.Error
// is about the request, any other error about the templates.
func (e *Engine) Render(req *runnerv1.StartWorkloadRequest) (*workload.Spec, *render.Manifests, error) {
	spec, err := request.Parse(req)
	if err != nil {
		return nil, nil, err
	}
	manifests, err := e.set.Render(spec, e.settings)
	if err != nil {
		return nil, nil, fmt.Errorf("rendering workload %s: %w", spec.ID, err)
	}
	return spec, manifests, nil
}
