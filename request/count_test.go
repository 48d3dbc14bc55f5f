package request_test

import (
	"strconv"
	"strings"
	"testing"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

// many is n times the same; manyPairs has n keys.
func many[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func manyPairs[T any](n int, v T) map[string]T {
	out := make(map[string]T, n)
	for i := range n {
		out["/k"+strconv.Itoa(i)] = v
	}
	return out
}

type start = runnerv1.StartWorkloadRequest

// counted has each thing that a request may have several of, with the most that
// it may have.
var counted = map[string]struct {
	most int
	give func(req *start, n int)
}{
	"sidecars":                       {50, func(req *start, n int) { req.Sidecars = many(n, &runnerv1.ContainerSpec{}) }},
	"init_containers":                {50, func(req *start, n int) { req.InitContainers = many(n, &runnerv1.ContainerSpec{}) }},
	"volumes":                        {64, func(req *start, n int) { req.Volumes = many(n, &runnerv1.VolumeSpec{}) }},
	"capabilities":                   {64, func(req *start, n int) { req.Capabilities = many(n, "x") }},
	"image_pull_credentials":         {64, func(req *start, n int) { req.ImagePullCredentials = many(n, &runnerv1.ImagePullCredential{}) }},
	"inline_files":                   {500, func(req *start, n int) { req.InlineFiles = manyPairs(n, []byte("x")) }},
	"labels":                         {256, func(req *start, n int) { req.Labels = manyPairs(n, "x") }},
	"additional_properties":          {256, func(req *start, n int) { req.AdditionalProperties = manyPairs(n, "x") }},
	"main.env":                       {1000, func(req *start, n int) { req.Main.Env = many(n, &runnerv1.EnvVar{}) }},
	"main.cmd":                       {4096, func(req *start, n int) { req.Main.Cmd = many(n, "\x00") }},
	"sidecars[1].mounts":             {500, func(req *start, n int) { req.Sidecars[1].Mounts = many(n, &runnerv1.VolumeMount{}) }},
	"sidecars[1].inline_file_mounts": {500, func(req *start, n int) { req.Sidecars[1].InlineFileMounts = many(n, &runnerv1.InlineFileMount{}) }},
	"init_containers[0].required_capabilities": {64, func(req *start, n int) { req.InitContainers[0].RequiredCapabilities = many(n, "") }},
	"init_containers[0].additional_properties": {256, func(req *start, n int) { req.InitContainers[0].AdditionalProperties = manyPairs(n, "x") }},
	"volumes[0].labels":                        {256, func(req *start, n int) { req.Volumes[0].Labels = manyPairs(n, "x") }},
	"volumes[0].additional_properties":         {256, func(req *start, n int) { req.Volumes[0].AdditionalProperties = manyPairs(n, "x") }},
}

// TestTooMany has the most of each thing, one more, and a million of it: these
// are counted and not looked at, or each would be worth an allocation.
func TestTooMany(t *testing.T) {
	for field, c := range counted {
		t.Run(field, func(t *testing.T) {
			read := func(n int) ([]workload.Violation, float64) {
				req := &runnerv1.StartWorkloadRequest{
					Main:           &runnerv1.ContainerSpec{Image: "a"},
					Sidecars:       []*runnerv1.ContainerSpec{{Image: "a"}, {Image: "a"}},
					InitContainers: []*runnerv1.ContainerSpec{{Image: "a"}},
					Volumes:        []*runnerv1.VolumeSpec{{Name: "v", Kind: runnerv1.VolumeKind_VOLUME_KIND_NAMED}},
				}
				c.give(req, n)
				var found []workload.Violation
				allocations := testing.AllocsPerRun(1, func() { _, found = request.Read(req) })
				return found, allocations
			}
			found, _ := read(c.most)
			for _, v := range found {
				if v.Token == "too_many" {
					t.Errorf("%d of them are too many: %v", c.most, v)
				}
			}
			for _, n := range []int{c.most + 1, 1_000_000} {
				found, allocations := read(n)
				if len(found) != 1 || found[0].Token != "too_many" || found[0].Field != field {
					t.Fatalf("of %d the violations are %v", n, found)
				}
				if m := found[0].Message; !strings.Contains(m, strconv.Itoa(n)) || !strings.Contains(m, strconv.Itoa(c.most)) {
					t.Errorf("the message has not both numbers: %s", m)
				}
				if allocations > 50 {
					t.Errorf("%d of them are worth %v allocations", n, allocations)
				}
			}
		})
	}
}

// TestTooManyOfAll names each at once, and of the repeated ones some.
func TestTooManyOfAll(t *testing.T) {
	req := &runnerv1.StartWorkloadRequest{}
	want := 0
	for field, c := range counted {
		if !strings.ContainsAny(field, ".[") {
			c.give(req, c.most+1)
			want++
		}
	}
	if _, found := request.Read(req); len(found) != want {
		t.Errorf("of %d lists the violations are %v", want, found)
	}
	req = &runnerv1.StartWorkloadRequest{Sidecars: many(50, &runnerv1.ContainerSpec{Cmd: many(5000, ""), Env: many(2000, &runnerv1.EnvVar{})})}
	if _, found := request.Read(req); len(found) != 50 {
		t.Errorf("it has %d violations", len(found))
	}
}

// TestTooManyNames has Kubernetes' own limits, with tokens of their own.
func TestTooManyNames(t *testing.T) {
	req := &runnerv1.StartWorkloadRequest{
		Main:      &runnerv1.ContainerSpec{Image: "a"},
		DnsConfig: &runnerv1.DnsConfig{Nameservers: many(1_000_000, "x"), Searches: many(1_000_000, "a b")},
	}
	allocations := testing.AllocsPerRun(1, func() {
		if _, found := request.Read(req); len(found) != 2 {
			t.Errorf("the violations are %v", found)
		}
	})
	// Two million names are in the request; the race detector adds some dozen of its own.
	if allocations > 10_000 {
		t.Errorf("they are worth %v allocations", allocations)
	}
}

// TestFaultsAreBounded: an answer has room for some.
func TestFaultsAreBounded(t *testing.T) {
	for n, want := range map[int]int{49: 49, 50: 50, 51: 50, 1000: 50} {
		req := &runnerv1.StartWorkloadRequest{Main: &runnerv1.ContainerSpec{Image: "a", Env: many(n, &runnerv1.EnvVar{Name: "1"})}}
		if _, found := request.Read(req); len(found) != want {
			t.Errorf("of %d faults it names %d", n, len(found))
		}
	}
}
