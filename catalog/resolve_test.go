package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

// someCatalog has one of each.
func someCatalog() *Catalog {
	return &Catalog{
		Flavors: []Flavor{
			{Name: "small", Resources: workload.Resources{RequestsCPU: "1"}},
			{Name: "usual", Default: true, Resources: workload.Resources{RequestsCPU: "2"}},
			{Name: "vm", RuntimeClass: "kata-qemu"},
			{Name: "sandbox", RuntimeClass: "gvisor", Deprecated: true},
		},
		StorageClasses: []StorageClass{
			{Name: "fast", ClassName: "ssd"},
			{Name: "any"},
			{Name: "slow", ClassName: "hdd", Default: true, Deprecated: true},
		},
		Capabilities: []string{Docker, ComputeResources},
	}
}

// someOffer has docker rootless.
func someOffer() Offer {
	return Offer{
		Implementations:   map[string]string{Docker: DockerRootless},
		LinuxCapabilities: []string{"CHOWN", "NET_BIND_SERVICE"},
		StorageClass:      "configured",
	}
}

func docker(implementation string) map[string]string {
	return map[string]string{Docker: implementation}
}

func TestResolveFlavor(t *testing.T) {
	for name, c := range map[string]struct {
		asked        string
		change       func(c *Catalog)
		want         string
		runtimeClass string
		refused      string
	}{
		"by name":            {asked: "small", want: "small"},
		"the default":        {want: "usual"},
		"with a class":       {asked: "sandbox", want: "sandbox", runtimeClass: "gvisor"},
		"unknown":            {asked: "enormous", refused: "small, usual, vm, sandbox"},
		"another case":       {asked: "Small", refused: "small"},
		"no default":         {change: func(c *Catalog) { c.Flavors[1].Default = false }},
		"none at all":        {change: func(c *Catalog) { c.Flavors = nil }},
		"unknown, of none":   {asked: "small", change: func(c *Catalog) { c.Flavors = nil }, refused: "none is offered"},
		"by a default's own": {asked: "usual", want: "usual"},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := someCatalog()
			if c.change != nil {
				c.change(catalog)
			}
			plan, faults := catalog.Resolve(&workload.Spec{Flavor: c.asked}, someOffer())
			if c.refused != "" {
				wantRefused(t, faults, "unknown_flavor flavor")
				if !strings.Contains(faults[0].Message, c.refused) {
					t.Errorf("the message %q does not say %q", faults[0].Message, c.refused)
				}
				return
			}
			wantRefused(t, faults)
			if plan.Flavor.Name != c.want || plan.RuntimeClass != c.runtimeClass {
				t.Errorf("it is %q with the class %q", plan.Flavor.Name, plan.RuntimeClass)
			}
		})
	}
}

func TestResolveCapabilities(t *testing.T) {
	for name, c := range map[string]struct {
		asked   []string
		flavor  string
		offer   func(o *Offer)
		declare func(c *Catalog)
		docker  string
		class   string
		refused []string
	}{
		"none":              {},
		"docker":            {asked: []string{Docker}, docker: DockerRootless},
		"compute-resources": {asked: []string{ComputeResources}},
		"both, and twice":   {asked: []string{ComputeResources, Docker, Docker}, docker: DockerRootless},
		"privileged":        {asked: []string{Docker}, offer: func(o *Offer) { o.Implementations = docker(DockerPrivileged) }, docker: DockerPrivileged},
		"kata-qemu":         {asked: []string{Docker}, offer: func(o *Offer) { o.Implementations = docker(DockerKataQEMU) }, docker: DockerKataQEMU, class: "kata-qemu"},
		"kata-fc":           {asked: []string{Docker}, offer: func(o *Offer) { o.Implementations = docker(DockerKataFC) }, docker: DockerKataFC, class: "kata-fc"},
		"the flavor's class is the same": {
			asked: []string{Docker}, flavor: "vm", offer: func(o *Offer) { o.Implementations = docker(DockerKataQEMU) }, docker: DockerKataQEMU, class: "kata-qemu",
		},
		"the flavor's class is another": {
			asked: []string{Docker}, flavor: "vm", offer: func(o *Offer) { o.Implementations = docker(DockerKataFC) }, refused: []string{"capability_conflict capabilities[0]"},
		},
		"the flavor's class stays":    {asked: []string{Docker}, flavor: "sandbox", docker: DockerRootless, class: "gvisor"},
		"unknown":                     {asked: []string{"teleport", Docker, ""}, refused: []string{"unknown_capability capabilities[0]", "unknown_capability capabilities[2]"}},
		"docker is not implemented":   {asked: []string{ComputeResources, Docker}, offer: func(o *Offer) { o.Implementations = nil }, refused: []string{"capability_not_configured capabilities[1]"}},
		"docker is withdrawn":         {asked: []string{Docker}, offer: func(o *Offer) { o.Restricted = true }, refused: []string{"capability_not_configured capabilities[0]"}},
		"the other is not withdrawn":  {asked: []string{ComputeResources}, offer: func(o *Offer) { o.Restricted = true }},
		"docker is not declared":      {asked: []string{Docker}, declare: func(c *Catalog) { c.Capabilities = []string{ComputeResources} }, refused: []string{"capability_not_configured capabilities[0]"}},
		"sizes are not declared":      {asked: []string{ComputeResources}, declare: func(c *Catalog) { c.Capabilities = []string{} }, refused: []string{"capability_not_configured capabilities[0]"}},
		"nothing is said of them":     {asked: []string{ComputeResources, Docker}, declare: func(c *Catalog) { c.Capabilities = nil }, docker: DockerRootless},
		"nothing said, none is there": {asked: []string{Docker}, declare: func(c *Catalog) { c.Capabilities = nil }, offer: func(o *Offer) { o.Implementations = docker("") }, refused: []string{"capability_not_configured capabilities[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			catalog, offer := someCatalog(), someOffer()
			if c.declare != nil {
				c.declare(catalog)
			}
			if c.offer != nil {
				c.offer(&offer)
			}
			plan, faults := catalog.Resolve(&workload.Spec{Flavor: c.flavor, Capabilities: c.asked}, offer)
			wantRefused(t, faults, c.refused...)
			if offer.Restricted && len(faults) > 0 && !strings.Contains(faults[0].Message, "restricted") {
				t.Errorf("the message does not say why: %s", faults[0].Message)
			}
			if len(c.refused) == 0 && (plan.Docker != c.docker || plan.RuntimeClass != c.class) {
				t.Errorf("docker is %q, the runtime class %q", plan.Docker, plan.RuntimeClass)
			}
		})
	}
}

// TestResolveStorageClasses has the order in which a class is chosen.
func TestResolveStorageClasses(t *testing.T) {
	named := func(class string) workload.Volume {
		return workload.Volume{Name: "v", Kind: workload.Named, StorageClass: class}
	}
	for name, c := range map[string]struct {
		volume  workload.Volume
		change  func(c *Catalog)
		want    string
		refused []string
	}{
		"by name":                         {volume: named("fast"), want: "ssd"},
		"an entry without a mapping":      {volume: named("any"), want: ""},
		"the default":                     {volume: named(""), want: "hdd"},
		"the default without a mapping":   {volume: named(""), change: func(c *Catalog) { c.StorageClasses[2].ClassName = "" }, want: ""},
		"the configured one":              {volume: named(""), change: func(c *Catalog) { c.StorageClasses[2].Default = false }, want: "configured"},
		"the configured one, of no entry": {volume: named(""), change: func(c *Catalog) { c.StorageClasses = nil }, want: "configured"},
		"unknown":                         {volume: named("gold"), refused: []string{"unknown_storage_class volumes[1].storage_class"}},
		"the cluster's own name":          {volume: named("ssd"), refused: []string{"unknown_storage_class volumes[1].storage_class"}},
		"of no entry":                     {volume: named("fast"), change: func(c *Catalog) { c.StorageClasses = nil }, refused: []string{"unknown_storage_class volumes[1].storage_class"}},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := someCatalog()
			if c.change != nil {
				c.change(catalog)
			}
			// A class means nothing to an ephemeral volume, whatever it is.
			ephemeral := workload.Volume{Name: "e", Kind: workload.Ephemeral, StorageClass: "gold"}
			plan, faults := catalog.Resolve(&workload.Spec{Volumes: []workload.Volume{ephemeral, c.volume}}, someOffer())
			wantRefused(t, faults, c.refused...)
			if len(c.refused) > 0 {
				return
			}
			if diff := cmp.Diff(map[string]string{"v": c.want}, plan.StorageClasses); diff != "" {
				t.Errorf("classes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveContainers(t *testing.T) {
	size := &workload.Resources{LimitsCPU: "1"}
	all := &workload.Spec{
		Main:     workload.Container{Resources: size, Capabilities: []string{"CHOWN", "CHOWN", "", "NET_BIND_SERVICE", "SYS_ADMIN"}},
		Sidecars: []workload.Container{{Resources: size, Capabilities: []string{"ALL"}}},
		Inits:    []workload.Container{{}, {Resources: size}},
	}
	sized := *all
	sized.Capabilities = []string{ComputeResources}
	for name, c := range map[string]struct {
		spec  *workload.Spec
		offer func(o *Offer)
		want  []string
	}{
		"as the operator has it": {all, func(*Offer) {}, []string{
			"compute_resources_required main.resources",
			"capability_not_allowed main.required_capabilities[4]",
			"compute_resources_required sidecars[0].resources",
			"capability_not_allowed sidecars[0].required_capabilities[0]",
			"compute_resources_required init_containers[1].resources",
		}},
		"with sizes": {&sized, func(*Offer) {}, []string{
			"capability_not_allowed main.required_capabilities[4]", "capability_not_allowed sidecars[0].required_capabilities[0]",
		}},
		"restricted": {&sized, func(o *Offer) { o.Restricted = true }, []string{
			"capability_not_allowed main.required_capabilities[0]",
			"capability_not_allowed main.required_capabilities[1]",
			"capability_not_allowed main.required_capabilities[4]",
			"capability_not_allowed sidecars[0].required_capabilities[0]",
		}},
		"restricted, without the one": {&sized, func(o *Offer) { o.Restricted, o.LinuxCapabilities = true, []string{"CHOWN"} }, []string{
			"capability_not_allowed main.required_capabilities[0]",
			"capability_not_allowed main.required_capabilities[1]",
			"capability_not_allowed main.required_capabilities[3]",
			"capability_not_allowed main.required_capabilities[4]",
			"capability_not_allowed sidecars[0].required_capabilities[0]",
		}},
		"all allowed": {&sized, func(o *Offer) { o.LinuxCapabilities = []string{"CHOWN", "NET_BIND_SERVICE", "SYS_ADMIN", "ALL"} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			offer := someOffer()
			c.offer(&offer)
			_, faults := someCatalog().Resolve(c.spec, offer)
			wantRefused(t, faults, c.want...)
			for _, f := range faults {
				if offer.Restricted && strings.Contains(f.Message, "offered are CHOWN") {
					t.Errorf("it offers what it refuses: %s", f.Message)
				}
			}
		})
	}
}

// TestResolveFindsEverything: one fault hides no other.
func TestResolveFindsEverything(t *testing.T) {
	spec := &workload.Spec{
		Flavor:       "enormous",
		Capabilities: []string{"teleport", Docker},
		Volumes:      []workload.Volume{{Name: "v", Kind: workload.Named, StorageClass: "gold"}},
		Main:         workload.Container{Capabilities: []string{"SYS_ADMIN"}, Resources: &workload.Resources{LimitsCPU: "1"}},
	}
	offer := someOffer()
	offer.Implementations = nil
	_, faults := someCatalog().Resolve(spec, offer)
	wantRefused(t, faults,
		"unknown_flavor flavor", "unknown_capability capabilities[0]", "capability_not_configured capabilities[1]",
		"unknown_storage_class volumes[0].storage_class", "compute_resources_required main.resources",
		"capability_not_allowed main.required_capabilities[0]")
}

// TestRefusalsAreBounded: an answer has room for some.
func TestRefusalsAreBounded(t *testing.T) {
	for n, want := range map[int]int{49: 49, 50: 50, 51: 50, 1000: 50} {
		_, faults := someCatalog().Resolve(&workload.Spec{Capabilities: slices.Repeat([]string{"teleport"}, n)}, someOffer())
		if len(faults) != want {
			t.Errorf("of %d it names %d", n, len(faults))
		}
	}
}

func TestAvailable(t *testing.T) {
	for name, c := range map[string]struct {
		declared []string
		offer    Offer
		want     []string
	}{
		"all are declared and implemented": {[]string{ComputeResources, Docker}, someOffer(), []string{ComputeResources, Docker}},
		"nothing is declared":              {nil, someOffer(), []string{Docker, ComputeResources}},
		"an empty list":                    {[]string{}, someOffer(), nil},
		"docker has no implementation":     {nil, Offer{}, []string{ComputeResources}},
		"docker has an empty one":          {nil, Offer{Implementations: docker("")}, []string{ComputeResources}},
		"docker is withdrawn":              {nil, Offer{Implementations: docker(DockerRootless), Restricted: true}, []string{ComputeResources}},
		"only docker, which is not there":  {[]string{Docker}, Offer{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Catalog{Capabilities: c.declared}).Available(c.offer)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("capabilities (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResolveLeavesItsInputAlone: one catalog serves all requests.
func TestResolveLeavesItsInputAlone(t *testing.T) {
	catalog, offer := someCatalog(), someOffer()
	offer.Restricted = true
	spec := &workload.Spec{Main: workload.Container{Capabilities: []string{"CHOWN"}}}
	catalog.Resolve(spec, offer)
	if diff := cmp.Diff(someCatalog(), catalog); diff != "" {
		t.Errorf("the catalog changes (-before +after):\n%s", diff)
	}
	if want := someOffer().LinuxCapabilities; !slices.Equal(want, offer.LinuxCapabilities) {
		t.Errorf("the operator's list becomes %v", offer.LinuxCapabilities)
	}
}

// wantRefused compares violations with "token field", in order.
func wantRefused(t *testing.T, faults []workload.Violation, want ...string) {
	t.Helper()
	var got []string
	for _, f := range faults {
		got = append(got, f.Token+" "+f.Field)
		if f.Message == "" {
			t.Errorf("the violation %s of %s says nothing", f.Token, f.Field)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
