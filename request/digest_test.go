package request_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
)

func minimal(id string) *runnerv1.StartWorkloadRequest {
	return &runnerv1.StartWorkloadRequest{WorkloadId: id, Main: &runnerv1.ContainerSpec{Image: "a"}}
}

func digest(t *testing.T, req *runnerv1.StartWorkloadRequest) string {
	t.Helper()
	spec, err := request.Parse(req)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Digest
}

// TestSameRequestSameDigest also finds a digest that depends on the order of a
// map, which differs from run to run of a loop.
func TestSameRequestSameDigest(t *testing.T) {
	req := requesttest.Rich(t)
	for i := range 100 {
		req.Labels[strings.Repeat("k", i%20+1)] = "v"
		req.AdditionalProperties[strings.Repeat("p", i%20+1)] = "v"
	}
	want := digest(t, req)
	if len(want) != 64 {
		t.Errorf("the digest %q is not a SHA-256 in hexadecimal", want)
	}
	wire, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again := &runnerv1.StartWorkloadRequest{}
		if err := proto.Unmarshal(wire, again); err != nil {
			t.Fatal(err)
		}
		if got := digest(t, again); got != want {
			t.Fatalf("the digest of the same request is %s and then %s", want, got)
		}
	}
}

// TestEveryChangeChangesTheDigest changes each field of the contract, by its
// descriptor, so that a field that Parse forgets is found.
func TestEveryChangeChangesTheDigest(t *testing.T) {
	req := requesttest.Rich(t)
	digests := map[string]string{digest(t, req): "the request as it is"}
	valid := map[string]bool{}
	for change := range requesttest.Changes(req) {
		field, _, _ := strings.Cut(change.Path, " (")
		spec, err := request.Parse(change.Message.(*runnerv1.StartWorkloadRequest))
		valid[field] = valid[field] || err == nil
		if err != nil {
			continue
		}
		if other, same := digests[spec.Digest]; same {
			t.Errorf("%s has the digest of: %s", change.Path, other)
		}
		digests[spec.Digest] = change.Path
	}
	for field, ok := range valid {
		if !ok && !onlyWay[field] {
			t.Errorf("no change of %s was valid, so it was not tested", field)
		}
	}
	if len(digests) < 200 {
		t.Errorf("only %d changes were tested", len(digests))
	}
}

// onlyWay holds what has no other valid value.
var onlyWay = map[string]bool{
	"main removed":            true,
	"main.image removed":      true,
	"volumes[0] removed":      true, // it is mounted
	"volumes[1] removed":      true,
	"volumes[0].name changed": true,
	"volumes[1].name changed": true,
	"init_containers[0].additional_properties[restart_policy] changed": true,
	// A file and its mounts change together.
	"inline_files[/etc/app/a.conf] removed":                 true,
	"inline_files[/etc/app/a.conf] renamed":                 true,
	"inline_files[/etc/app/b.conf] removed":                 true,
	"inline_files[/etc/app/b.conf] renamed":                 true,
	"main.inline_file_mounts[0].path changed":               true,
	"main.inline_file_mounts[1].path changed":               true,
	"sidecars[0].inline_file_mounts[0].path changed":        true,
	"init_containers[0].inline_file_mounts[0].path changed": true,
}

// TestRichRequestSetsEveryField makes the test above complete.
func TestRichRequestSetsEveryField(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			seen[f.FullName()] = true
			switch {
			case f.IsList() && f.Message() != nil:
				for i := range v.List().Len() {
					visit(v.List().Get(i).Message())
				}
			case f.Message() != nil && !f.IsMap():
				visit(v.Message())
			}
			return true
		})
	}
	visit(requesttest.Rich(t).ProtoReflect())
	var require func(d protoreflect.MessageDescriptor)
	require = func(d protoreflect.MessageDescriptor) {
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			if !seen[f.FullName()] {
				t.Errorf("requesttest/rich.yaml does not set %s", f.FullName())
			}
			if f.Message() != nil && !f.IsMap() {
				require(f.Message())
			}
		}
	}
	require((&runnerv1.StartWorkloadRequest{}).ProtoReflect().Descriptor())
}

// TestEqualRequests have the same meaning, and so the same digest.
func TestEqualRequests(t *testing.T) {
	const id = "workload_id: 00000000-0000-4000-8000-00000000000a, "
	for name, pair := range map[string][2]string{
		"a default name":   {`main: {image: a}`, `main: {image: a, name: main}`},
		"a duplicate":      {`main: {image: a, env: [{name: A, value: x}, {name: A, value: z}]}`, `main: {image: a, env: [{name: A, value: z}]}`},
		"a final slash":    {`main: {image: a, mounts: [{volume: w, mount_path: /w}]}, volumes: [{name: w, kind: 1}]`, `main: {image: a, mounts: [{volume: w, mount_path: /w/}]}, volumes: [{name: w, kind: 1}]`},
		"the claim's name": {`main: {image: a}, volumes: [{name: w, kind: 2}]`, `main: {image: a}, volumes: [{name: w, kind: 2, persistent_name: w}]`},
		"an empty part":    {`main: {image: a}`, `main: {image: a}, dns_config: {}`},
		"the Pod's name":   {`main: {image: a}`, `main: {image: a}, workload_id: workload-00000000-0000-4000-8000-00000000000a`},
	} {
		t.Run(name, func(t *testing.T) {
			var digests []string
			for _, text := range pair {
				if !strings.Contains(text, "workload_id") {
					text = id + text
				}
				digests = append(digests, parse(t, "{"+text+"}").Digest)
			}
			if digests[0] != digests[1] {
				t.Error("the digests differ")
			}
		})
	}
}
