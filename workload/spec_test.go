package workload_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

const secret = "s3cr3t-value"

// secretive has a secret in each place where a Spec may hold one.
func secretive() *workload.Spec {
	container := func(name string) workload.Container {
		return workload.Container{
			Name: name, Args: []string{"run"},
			Env: []workload.EnvVar{{Name: "TOKEN", Value: secret}, {Name: "EMPTY"}, {Name: "MORE", Value: "x " + secret}},
		}
	}
	return &workload.Spec{
		ID:          "00000000-0000-4000-8000-00000000000a",
		Main:        container("main"),
		Sidecars:    []workload.Container{container("a"), container("b")},
		Inits:       []workload.Container{container("c")},
		InlineFiles: map[string][]byte{"/a": []byte(secret), "/b": {}},
		PullCredentials: []workload.PullCredential{
			{Registry: "ghcr.io", Username: "me", Password: secret}, {Registry: "quay.io", Username: "you", Password: secret},
		},
		Labels: map[string]string{"team": "core"},
		Digest: "d1ge5t",
	}
}

func TestMaskedHasNoSecret(t *testing.T) {
	spec := secretive()
	masked := spec.Masked()
	if text := asJSON(t, masked); strings.Contains(text, secret) || strings.Contains(text, "czNjcjN0") {
		t.Errorf("a secret is left: %s", text)
	}
	if diff := cmp.Diff(secretive(), spec); diff != "" {
		t.Errorf("the original changes (-before +after):\n%s", diff)
	}
	if masked.Digest != spec.Digest {
		t.Errorf("the digest becomes %q", masked.Digest)
	}
}

// TestMaskedKeepsTheRest: what is no secret is there, and whether a value is
// empty too.
func TestMaskedKeepsTheRest(t *testing.T) {
	want := secretive()
	for _, c := range want.Containers() {
		c.Env[0].Value, c.Env[2].Value = "(masked)", "(masked)"
	}
	for path := range want.InlineFiles {
		want.InlineFiles[path] = []byte("(masked)")
	}
	for i := range want.PullCredentials {
		want.PullCredentials[i].Password = "(masked)"
	}
	if diff := cmp.Diff(want, secretive().Masked()); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
}

func TestMaskedOfLittle(t *testing.T) {
	spec := &workload.Spec{ID: "x"}
	if diff := cmp.Diff(spec, spec.Masked()); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
}

func TestContainers(t *testing.T) {
	spec := secretive()
	var got []string
	for field, c := range spec.Containers() {
		got = append(got, field+" "+c.Name)
		c.Image = "changed" // it is the container itself, not a copy
	}
	want := []string{"main main", "sidecars[0] a", "sidecars[1] b", "init_containers[0] c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	for stop := range want {
		var seen []string
		for field := range spec.Containers() {
			if seen = append(seen, field); len(seen) == stop+1 {
				break
			}
		}
		if len(seen) != stop+1 || !strings.HasPrefix(want[stop], seen[stop]+" ") {
			t.Errorf("after %d it has seen %v", stop+1, seen)
		}
	}
	all := slices.Concat([]workload.Container{spec.Main}, spec.Sidecars, spec.Inits)
	if slices.ContainsFunc(all, func(c workload.Container) bool { return c.Image != "changed" }) {
		t.Error("it yields copies")
	}
}

func TestNamesOfSecrets(t *testing.T) {
	const id = "00000000-0000-4000-8000-00000000000a"
	for want, got := range map[string]string{
		"workload-" + id + "-pull":         workload.PullSecretName(id, 0),
		"workload-" + id + "-pull-2":       workload.PullSecretName(id, 1),
		"workload-" + id + "-pull-11":      workload.PullSecretName(id, 10),
		"workload-" + id + "-inline-files": workload.InlineFilesName(id),
	} {
		if got != want {
			t.Errorf("it is %q and not %q", got, want)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
