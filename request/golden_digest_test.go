package request_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/workload"
)

// TestDigestsStay has the digests of two requests. They stand in the annotations
// of Pods that run: a retry that comes after an upgrade of the runner, with
// another digest for the same request, would be refused as another request.
//
// So a new field of workload.Spec, or of a part of it, takes part in the digest
// only where a request sets it: give it a json tag with omitempty. A renamed
// field keeps its old name as its json name.
func TestDigestsStay(t *testing.T) {
	const id = "00000000-0000-4000-8000-00000000000a"
	for name, c := range map[string]struct{ got, want string }{
		"minimal": {digest(t, minimal(id)), "3ec5c281b1091c4d1377a45805d48c4b082db3a9a5e99ac57ee1be82807ea2e3"},
		"rich":    {digest(t, requesttest.Rich(t)), "2b11f68bd3b1a1347a9bffc5a91cc3d61341f8cc2a353a62727e52ec17ebc052"},
	} {
		if c.got != c.want {
			t.Errorf("the digest of the %s request is %s, and of those that run %s", name, c.got, c.want)
		}
	}
}

// TestNewFieldsStayOutOfOldDigests finds a field of a Spec that is new and in
// the JSON of requests that do not set it.
func TestNewFieldsStayOutOfOldDigests(t *testing.T) {
	// Those of the first digests, which stay as they are.
	old := map[string]string{
		"Spec":           "ID Main Sidecars Inits Volumes DNS Labels Properties Flavor Capabilities InlineFiles PullCredentials Digest",
		"Container":      "Name Image Entrypoint Args Env WorkingDir Mounts Capabilities InlineFiles Resources Properties Restarts ReadOnlyRoot",
		"EnvVar":         "Name Value",
		"Mount":          "Volume Path ReadOnly",
		"Volume":         "Name Kind Claim Size StorageClass Labels Properties",
		"DNS":            "Nameservers Searches",
		"Resources":      "RequestsCPU RequestsMemory LimitsCPU LimitsMemory",
		"PullCredential": "Registry Username Password",
	}
	for _, part := range []any{
		workload.Spec{}, workload.Container{}, workload.EnvVar{}, workload.Mount{}, workload.Volume{},
		workload.DNS{}, workload.Resources{}, workload.PullCredential{},
	} {
		name := reflect.TypeOf(part).Name()
		data, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(old[name]) {
			if _, there := fields[field]; !there {
				t.Errorf("%s.%s is not in the JSON of an unset %s", name, field, name)
			}
			delete(fields, field)
		}
		for field := range fields {
			t.Errorf("%s.%s is new and in the JSON of an unset %s; it needs omitempty", name, field, name)
		}
	}
}
