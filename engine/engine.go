// Package engine takes a request all the way to its manifests: validation, the
// catalog, rendering. The server, the command line and the golden cases use
// the same one.
package engine

import (
	"fmt"

	"github.com/agynio/k8s-runner/catalog"
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
	// Layers are an operator's, above the templates.
	Layers  []render.Layer
	Catalog *catalog.Catalog
	// Config holds the operator's settings.
	Config config.Config
}

// Engine renders requests. It never changes, and it is safe for concurrent use.
type Engine struct {
	set      *render.Set
	catalog  *catalog.Catalog
	offer    catalog.Offer
	settings render.Settings
}

// New compiles the templates. Its error names the file and the line.
func New(o Options) (*Engine, error) {
	set, err := render.Compile(o.Templates, o.Layers...)
	if err != nil {
		return nil, fmt.Errorf("compiling the templates: %w", err)
	}
	return &Engine{set: set, catalog: o.Catalog, offer: offer(o.Config), settings: settings(o.Config)}, nil
}

// Digest identifies the templates.
func (e *Engine) Digest() string { return e.set.Digest() }

// Capabilities lists those of the catalog that work with the settings.
func Capabilities(offered *catalog.Catalog, c config.Config) []string {
	return offered.Available(offer(c))
}

func offer(c config.Config) catalog.Offer {
	return catalog.Offer{
		Implementations:   c.Capabilities.Implementations,
		LinuxCapabilities: c.Security.AllowedCapabilities,
		StorageClass:      c.Volumes.StorageClass,
		Restricted:        c.Security.Profile == config.ProfileRestricted,
	}
}

func settings(c config.Config) render.Settings {
	out := render.Settings{
		Namespace:           c.Kube.Namespace,
		FSGroup:             c.Workload.FSGroup,
		ClaimSize:           c.Volumes.Size,
		DockerImage:         c.Capabilities.DockerImage,
		DockerRootlessImage: c.Capabilities.DockerRootlessImage,
		RunAsUser:           c.Security.RunAsUser,
		Restricted:          c.Security.Profile == config.ProfileRestricted,
		LinuxCapabilities:   c.Security.AllowedCapabilities,
		AllowedPrivileges:   c.Security.AllowedPrivileges,
		AllowedKinds:        c.Templates.AllowedKinds,
	}
	if c.NetworkPolicy.Enabled {
		out.NetworkPolicy = &render.NetworkPolicy{EgressCIDRs: c.NetworkPolicy.EgressCIDRs}
	}
	return out
}

// Plan returns what req asks for and what the names in it stand for, or a
// *workload.Error with everything that is wrong with it.
func (e *Engine) Plan(req *runnerv1.StartWorkloadRequest) (*workload.Spec, *catalog.Plan, error) {
	spec, faults := request.Read(req)
	plan, more := e.catalog.Resolve(spec, e.offer)
	if err := workload.Invalid(append(faults, more...)); err != nil {
		return nil, nil, err
	}
	return spec, plan, nil
}

// Manifests returns the objects of a planned workload. A *workload.Error is
// about the request, any other error about the templates.
func (e *Engine) Manifests(spec *workload.Spec, plan *catalog.Plan) (*render.Manifests, error) {
	manifests, err := e.set.Render(spec, plan, e.settings)
	if err != nil {
		return nil, fmt.Errorf("rendering workload %s: %w", spec.ID, err)
	}
	return manifests, nil
}

// Render does both.
func (e *Engine) Render(req *runnerv1.StartWorkloadRequest) (*workload.Spec, *render.Manifests, error) {
	spec, plan, err := e.Plan(req)
	if err != nil {
		return nil, nil, err
	}
	manifests, err := e.Manifests(spec, plan)
	return spec, manifests, err
}
