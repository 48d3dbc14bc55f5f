package request_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/workload"
)

// parseError returns the error of the request text, which must be refused.
func parseError(t *testing.T, text string) error {
	t.Helper()
	_, err := request.Parse(requesttest.Parse(t, text))
	if err == nil {
		t.Fatal("the request is accepted")
	}
	return err
}

func TestDefaultNames(t *testing.T) {
	spec := parse(t, `{main: {image: a}, sidecars: [{image: a}, {image: a, name: named}, {image: a}], init_containers: [{image: a}, {image: a}]}`)
	var names []string
	for _, c := range spec.Containers() {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"main", "sidecar-1", "named", "sidecar-3", "init-1", "init-2"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestContainersCanStopEarly(t *testing.T) {
	spec := parse(t, `{main: {image: a}, sidecars: [{image: a}], init_containers: [{image: a}]}`)
	for stop := 1; stop <= 3; stop++ {
		seen := 0
		for range spec.Containers() {
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop {
			t.Errorf("%d containers were seen instead of %d", seen, stop)
		}
	}
}

func TestWorkloadID(t *testing.T) {
	const id = "00000000-0000-4000-8000-00000000000a"
	for name, text := range map[string]string{
		"an id":      `{main: {image: a}, workload_id: ` + id + `}`,
		"a Pod name": `{main: {image: a}, workload_id: workload-` + id + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, text).ID; got != id {
				t.Errorf("the id is %q", got)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		first, second := parse(t, `main: {image: a}`).ID, parse(t, `main: {image: a}`).ID
		if !workload.IsID(first) || !workload.IsID(second) || first == second {
			t.Errorf("the ids made are %q and %q", first, second)
		}
	})
}

func TestLastVariableWins(t *testing.T) {
	spec := parse(t, `main: {image: a, env: [{name: FOO, value: "1"}, {name: BAR, value: x}, {name: FOO, value: "2"}, {name: foo, value: "3"}, {name: FOO, value: ""}]}`)
	want := []workload.EnvVar{{Name: "FOO"}, {Name: "BAR", Value: "x"}, {Name: "foo", Value: "3"}}
	if diff := cmp.Diff(want, spec.Main.Env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
}

func TestVolumes(t *testing.T) {
	spec := parse(t, `{main: {image: a, mounts: [{volume: e, mount_path: /x/../e/, read_only: true}]},
		volumes: [{name: e, kind: VOLUME_KIND_EPHEMERAL, size: 1Gi}, {name: m, kind: VOLUME_KIND_NAMED}, {name: p, kind: VOLUME_KIND_NAMED, persistent_name: claim, storage_class: fast, labels: {a: b}}]}`)
	want := []workload.Volume{
		{Name: "e", Kind: workload.Ephemeral, Size: "1Gi"},
		{Name: "m", Kind: workload.Named, Claim: "m"},
		{Name: "p", Kind: workload.Named, Claim: "claim", StorageClass: "fast", Labels: map[string]string{"a": "b"}},
	}
	if diff := cmp.Diff(want, spec.Volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	mounts := []workload.Mount{{Volume: "e", Path: "/e", ReadOnly: true}}
	if diff := cmp.Diff(mounts, spec.Main.Mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

func TestKnownProperties(t *testing.T) {
	yes, no := true, false
	spec := parse(t, `{main: {image: a, additional_properties: {read_only_root_filesystem: "true", restart_policy: Always, other: x}},
		sidecars: [{image: a, additional_properties: {read_only_root_filesystem: "false"}}],
		init_containers: [{image: a}, {image: a, additional_properties: {restart_policy: Always}}]}`)
	type known struct {
		ReadOnlyRoot *bool
		Restarts     bool
	}
	var got []known
	for _, c := range spec.Containers() {
		got = append(got, known{c.ReadOnlyRoot, c.Restarts})
	}
	// Only an init container can be a native sidecar.
	want := []known{{&yes, false}, {&no, false}, {nil, false}, {nil, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("known properties (-want +got):\n%s", diff)
	}
	if spec.Main.Properties["other"] != "x" {
		t.Error("an unknown property is not visible")
	}
}
