package lint

import (
	_ "embed"
	"fmt"
	"path"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/request"
)

// everything is a request with all that templates see.
//
//go:embed everything.yaml
var everything []byte

// subject is a request to render.
type subject struct {
	// name tells readers of a finding which request it was.
	name    string
	options engine.Options
	request *runnerv1.StartWorkloadRequest
	// variant is true if the settings are not those of the operator. Their Pods
	// need not be more than baseline.
	variant bool
	// shipped is true for a golden case that the runner ships.
	shipped bool

	// own is true for an operator's case. file is its request, err why it
	// cannot be read.
	own          bool
	file         string
	err          error
	ownTemplates []string
	// refused is true if the case expects an error.
	refused bool
}

// subjects returns all requests to render: first those that are made here, as
// they say most about where a fault comes from.
func subjects(o Options) ([]subject, error) {
	full, err := request.Unmarshal(everything)
	if err != nil {
		return nil, fmt.Errorf("reading the request for templates: %w", err)
	}
	own, err := ownCases(o)
	if err != nil {
		return nil, err
	}
	shipped, err := shippedCases(o, own)
	if err != nil {
		return nil, err
	}
	base := engine.Options(o.Suite)
	return slices.Concat(generated(base, full), variants(base, full), shipped, own), nil
}

// generated asks for each thing that the catalog offers.
func generated(o engine.Options, full *runnerv1.StartWorkloadRequest) []subject {
	var out []subject
	with := func(name string, change func(*runnerv1.StartWorkloadRequest)) {
		req := proto.CloneOf(full)
		change(req)
		out = append(out, subject{name: name, options: o, request: req})
	}
	with("a request of nothing but an image", func(r *runnerv1.StartWorkloadRequest) {
		proto.Reset(r)
		r.WorkloadId, r.Main = full.GetWorkloadId(), &runnerv1.ContainerSpec{Image: full.GetMain().GetImage()}
	})
	with("a request that has everything", func(*runnerv1.StartWorkloadRequest) {})
	for _, f := range o.Catalog.Flavors {
		with("flavor "+f.Name, func(r *runnerv1.StartWorkloadRequest) { r.Flavor = f.Name })
	}
	for _, c := range o.Catalog.StorageClasses {
		with("storage class "+c.Name, func(r *runnerv1.StartWorkloadRequest) {
			for _, v := range r.GetVolumes() {
				if v.GetKind() == runnerv1.VolumeKind_VOLUME_KIND_NAMED {
					v.StorageClass = c.Name
				}
			}
		})
	}
	with("capability "+catalog.ComputeResources, func(r *runnerv1.StartWorkloadRequest) {
		r.Capabilities = []string{catalog.ComputeResources}
		r.Main.Resources = &runnerv1.ComputeResources{RequestsCpu: "1", RequestsMemory: "1Gi", LimitsCpu: "2", LimitsMemory: "2Gi"}
	})
	for _, name := range o.Config.Security.AllowedCapabilities {
		with("Linux capability "+name, func(r *runnerv1.StartWorkloadRequest) { r.Main.RequiredCapabilities = []string{name} })
	}
	return out
}

// variants ask under other settings, so that each branch of a template that
// depends on one is seen.
func variants(o engine.Options, full *runnerv1.StartWorkloadRequest) []subject {
	var out []subject
	with := func(name string, change func(*config.Config), capabilities ...string) {
		s := subject{name: name, options: o, request: proto.CloneOf(full), variant: true}
		s.request.Capabilities = capabilities
		change(&s.options.Config)
		out = append(out, s)
	}
	implementations := []string{catalog.DockerRootless, catalog.DockerPrivileged, catalog.DockerKataQEMU, catalog.DockerKataFC}
	if configured := o.Config.Capabilities.Implementations[catalog.Docker]; configured != "" {
		implementations = []string{configured}
	}
	for _, name := range implementations {
		with("docker, implementation "+name, func(c *config.Config) {
			c.Capabilities.Implementations = map[string]string{catalog.Docker: name}
		}, catalog.Docker)
	}
	for _, networks := range [][]string{nil, {"192.0.2.0/24"}} {
		with(fmt.Sprintf("network_policy.egress_cidrs %v", networks), func(c *config.Config) {
			c.NetworkPolicy = config.NetworkPolicy{Enabled: true, EgressCIDRs: networks}
		})
	}
	with("security.profile restricted", func(c *config.Config) {
		c.Security.Profile, c.Security.RunAsUser = config.ProfileRestricted, 1000
	})
	return out
}

// ownCases returns the operator's, with their catalogs and settings.
func ownCases(o Options) ([]subject, error) {
	if o.Cases == nil {
		return nil, nil
	}
	names, err := golden.Cases(o.Cases)
	if err != nil {
		return nil, err
	}
	var out []subject
	for _, name := range names {
		s := subject{name: path.Join(CaseFolder, name), own: true, file: path.Join(CaseFolder, name, golden.RequestFile)}
		c, err := o.Suite.Read(o.Cases, name)
		if s.err = err; err == nil {
			s.request, s.options, s.variant = c.Request, c.Options, c.Configured
			s.ownTemplates, s.refused = c.Own, c.Refused
		}
		out = append(out, s)
	}
	return out, nil
}

// shippedCases returns those that the shipped templates render, but for what
// own replaces. They are asked of the operator's catalog and settings.
func shippedCases(o Options, own []subject) ([]subject, error) {
	all, err := golden.ShippedCases()
	if err != nil {
		return nil, err
	}
	names, err := golden.Cases(all)
	if err != nil {
		return nil, err
	}
	var out []subject
	for _, name := range names {
		c, err := o.Suite.Read(all, name)
		if err != nil {
			return nil, err
		}
		replaced := slices.ContainsFunc(own, func(s subject) bool { return s.name == path.Join(CaseFolder, name) })
		if !c.Refused && len(c.Own) == 0 && !c.Layered && !replaced {
			out = append(out, subject{name: "the shipped case " + name, options: engine.Options(o.Suite), request: c.Request, shipped: true})
		}
	}
	return out, nil
}
