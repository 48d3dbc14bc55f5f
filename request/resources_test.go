package request_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

func TestResources(t *testing.T) {
	spec := parse(t, `{main: {image: a, resources: {requests_cpu: 100m, requests_memory: 64Mi, limits_cpu: "0.1", limits_memory: 64Mi}},
		sidecars: [{image: a, resources: {}}, {image: a}, {image: a, resources: {limits_memory: "1e9"}}], init_containers: [{image: a, resources: {requests_cpu: "0"}}]}`)
	var got []*workload.Resources
	for _, c := range spec.Containers() {
		got = append(got, c.Resources)
	}
	want := []*workload.Resources{
		{RequestsCPU: "100m", RequestsMemory: "64Mi", LimitsCPU: "0.1", LimitsMemory: "64Mi"},
		nil, nil, {LimitsMemory: "1e9"}, {RequestsCPU: "0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestResourcesRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		resources string
		want      []string
	}{
		"no quantities": {
			`requests_cpu: lots, requests_memory: 1GB, limits_cpu: "1 ", limits_memory: "0x10"`,
			[]string{"invalid_quantity requests_cpu", "invalid_quantity requests_memory", "invalid_quantity limits_cpu", "invalid_quantity limits_memory"},
		},
		"below zero":               {`requests_cpu: "-1", limits_memory: "-1Gi"`, []string{"invalid_quantity requests_cpu", "invalid_quantity limits_memory"}},
		"slow to read":             {`limits_cpu: "1e-99999999"`, []string{"invalid_quantity limits_cpu"}},
		"a request above":          {`requests_cpu: 1001m, limits_cpu: "1"`, []string{"request_above_limit requests_cpu"}},
		"in another unit":          {`requests_memory: 1Gi, limits_memory: 1G`, []string{"request_above_limit requests_memory"}},
		"above none":               {`requests_cpu: "1", limits_cpu: "0"`, []string{"request_above_limit requests_cpu"}},
		"both":                     {`requests_cpu: "2", limits_cpu: "1", requests_memory: "2", limits_memory: "1"`, []string{"request_above_limit requests_cpu", "request_above_limit requests_memory"}},
		"equal":                    {`requests_cpu: 1000m, limits_cpu: "1"`, nil},
		"the one is not the other": {`requests_cpu: "8", limits_memory: "1"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for container, text := range map[string]string{
				"main":               `{main: {image: a, resources: {` + c.resources + `}}}`,
				"sidecars[0]":        `{main: {image: a}, sidecars: [{image: a, resources: {` + c.resources + `}}]}`,
				"init_containers[0]": `{main: {image: a}, init_containers: [{image: a, resources: {` + c.resources + `}}]}`,
			} {
				wantFaults(t, text, inField(container+".resources.", c.want)...)
			}
		})
	}
}

// inField puts a prefix before the fields of "token field".
func inField(prefix string, faults []string) []string {
	var out []string
	for _, f := range faults {
		for i, r := range f {
			if r == ' ' {
				out = append(out, f[:i+1]+prefix+f[i+1:])
				break
			}
		}
	}
	return out
}

// TestLinuxCapabilities keeps their places, by which the catalog names them.
func TestLinuxCapabilities(t *testing.T) {
	spec := parse(t, `{main: {image: a, required_capabilities: [NET_ADMIN, CAP_CHOWN, cap_net_admin, net_raw, ALL, BPF]}}`)
	want := []string{"NET_ADMIN", "CHOWN", "NET_ADMIN", "NET_RAW", "ALL", "BPF"}
	if diff := cmp.Diff(want, spec.Main.Capabilities); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	wantFaults(t, `{main: {image: a, required_capabilities: [CHOWN, "", CAP_, "NET ADMIN", "CHOWN\n", NET-ADMIN, ÉTÉ, 1A, A234567890123456789012345678901234]}, sidecars: [{image: a, required_capabilities: [CAP_CAP_]}]}`,
		"invalid_capability main.required_capabilities[1]", "invalid_capability main.required_capabilities[2]",
		"invalid_capability main.required_capabilities[3]", "invalid_capability main.required_capabilities[4]",
		"invalid_capability main.required_capabilities[5]", "invalid_capability main.required_capabilities[6]",
		"invalid_capability main.required_capabilities[7]", "invalid_capability main.required_capabilities[8]")
}
