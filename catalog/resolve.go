package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agynio/k8s-runner/workload"
)

// Offer is what an operator's settings say beside the catalog.
type Offer struct {
	// Implementations maps a capability to the way in which it is made.
	Implementations map[string]string
	// LinuxCapabilities are those that a request may add to a container.
	LinuxCapabilities []string
	// StorageClass is the cluster's class of claims for which neither request
	// nor catalog names one.
	StorageClass string
	// Restricted withdraws what Kubernetes' restricted level does not admit.
	Restricted bool
}

// Plan is what the names in a request stand for.
type Plan struct {
	// Flavor is the one named, or the default, or empty.
	Flavor Flavor
	// Docker is an implementation, or empty.
	Docker string
	// RuntimeClass is that of the flavor or of a capability.
	RuntimeClass string
	// StorageClasses maps named volumes to classes of the cluster; an empty one
	// leaves the choice to the cluster.
	StorageClasses map[string]string
}

// netBindService is the only capability that the restricted level admits.
const netBindService = "NET_BIND_SERVICE"

// Resolve looks up the names in spec. Its violations are all that the catalog
// and o do not offer.
func (c *Catalog) Resolve(spec *workload.Spec, o Offer) (*Plan, []workload.Violation) {
	r := &resolver{catalog: c, offer: o, plan: &Plan{StorageClasses: map[string]string{}}}
	r.flavor(spec.Flavor)
	for i, name := range spec.Capabilities {
		r.capability(fmt.Sprintf("capabilities[%d]", i), name)
	}
	for i := range spec.Volumes {
		r.volume(fmt.Sprintf("volumes[%d].storage_class", i), &spec.Volumes[i])
	}
	sized := slices.Contains(spec.Capabilities, ComputeResources)
	for field, container := range spec.Containers() {
		r.container(field, container, sized)
	}
	return r.plan, r.violations
}

// Available lists the capabilities that requests may ask for: those that the
// catalog declares, if it declares any at all, as far as they are implemented.
func (c *Catalog) Available(o Offer) []string {
	declared := c.Capabilities
	if declared == nil {
		declared = known()
	}
	var out []string
	for _, name := range declared {
		if name != Docker || (o.Implementations[Docker] != "" && !o.Restricted) {
			out = append(out, name)
		}
	}
	return out
}

type resolver struct {
	catalog    *Catalog
	offer      Offer
	plan       *Plan
	violations []workload.Violation
}

// maxViolations bounds an answer, as that of package request does.
const maxViolations = 50

func (r *resolver) refuse(field, token, format string, args ...any) {
	if len(r.violations) == maxViolations {
		return
	}
	r.violations = append(r.violations, workload.Violation{Field: field, Token: token, Message: fmt.Sprintf(format, args...)})
}

func (r *resolver) flavor(name string) {
	i := slices.IndexFunc(r.catalog.Flavors, func(f Flavor) bool {
		return f.Name == name || (name == "" && f.Default)
	})
	switch {
	case i >= 0:
		r.plan.Flavor = r.catalog.Flavors[i]
		r.plan.RuntimeClass = r.plan.Flavor.RuntimeClass
	case name != "":
		r.refuse("flavor", "unknown_flavor", "there is no flavor %q; %s", name, offered(r.catalog.flavorNames()))
	}
}

func (r *resolver) capability(field, name string) {
	switch {
	case !slices.Contains(known(), name):
		r.refuse(field, "unknown_capability", "there is no capability %q; %s", name, offered(r.catalog.Available(r.offer)))
		return
	case name == Docker && r.offer.Restricted:
		r.refuse(field, "capability_not_configured", "the security profile restricted has no %s", name)
		return
	case !slices.Contains(r.catalog.Available(r.offer), name):
		r.refuse(field, "capability_not_configured", "%s is not configured here; %s", name, offered(r.catalog.Available(r.offer)))
		return
	case name != Docker:
		return
	}
	r.plan.Docker = r.offer.Implementations[Docker]
	if r.plan.Docker != DockerKataQEMU && r.plan.Docker != DockerKataFC {
		return
	}
	if class := r.plan.RuntimeClass; class != "" && class != r.plan.Docker {
		r.refuse(field, "capability_conflict", "docker needs the runtime class %s, and the flavor %s has %s", r.plan.Docker, r.plan.Flavor.Name, class)
	}
	r.plan.RuntimeClass = r.plan.Docker
}

// volume finds the class of a named volume. An entry of the catalog that maps
// to no class leaves it unset on purpose.
func (r *resolver) volume(field string, v *workload.Volume) {
	if v.Kind != workload.Named {
		return
	}
	i := slices.IndexFunc(r.catalog.StorageClasses, func(s StorageClass) bool {
		return s.Name == v.StorageClass || (v.StorageClass == "" && s.Default)
	})
	switch {
	case i >= 0:
		r.plan.StorageClasses[v.Name] = r.catalog.StorageClasses[i].ClassName
	case v.StorageClass == "":
		r.plan.StorageClasses[v.Name] = r.offer.StorageClass
	default:
		r.refuse(field, "unknown_storage_class", "there is no storage class %q; %s", v.StorageClass, offered(r.catalog.storageClassNames()))
	}
}

func (r *resolver) container(field string, c *workload.Container, sized bool) {
	if c.Resources != nil && !sized {
		r.refuse(field+".resources", "compute_resources_required", "only a request with the capability %s sizes its containers", ComputeResources)
	}
	for i, name := range c.Capabilities {
		at := fmt.Sprintf("%s.required_capabilities[%d]", field, i)
		switch allowed := r.offer.linuxCapabilities(); {
		case name == "": // refused already
		case slices.Contains(allowed, name):
		case slices.Contains(r.offer.LinuxCapabilities, name):
			r.refuse(at, "capability_not_allowed", "the security profile restricted has no %s; %s", name, offered(allowed))
		default:
			r.refuse(at, "capability_not_allowed", "the operator's list has no %s; %s", name, offered(allowed))
		}
	}
}

// linuxCapabilities lists those that a container may add.
func (o *Offer) linuxCapabilities() []string {
	if !o.Restricted {
		return o.LinuxCapabilities
	}
	return slices.DeleteFunc(slices.Clone(o.LinuxCapabilities), func(name string) bool { return name != netBindService })
}

func offered(names []string) string {
	if len(names) == 0 {
		return "none is offered"
	}
	return "offered are " + strings.Join(names, ", ")
}

func (c *Catalog) flavorNames() []string {
	names := make([]string, len(c.Flavors))
	for i, f := range c.Flavors {
		names[i] = f.Name
	}
	return names
}

func (c *Catalog) storageClassNames() []string {
	names := make([]string, len(c.StorageClasses))
	for i, s := range c.StorageClasses {
		names[i] = s.Name
	}
	return names
}

// known lists the capabilities that the shipped templates implement.
func known() []string { return []string{Docker, ComputeResources} }
