package rpc

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

func TestStopAndRemove(t *testing.T) {
	stop := func(ref string, seconds uint32) func(runnerv1.RunnerServiceClient) error {
		return func(c runnerv1.RunnerServiceClient) error {
			_, err := c.StopWorkload(context.Background(), &runnerv1.StopWorkloadRequest{WorkloadId: ref, TimeoutSec: seconds})
			return err
		}
	}
	remove := func(force, volumes bool) func(runnerv1.RunnerServiceClient) error {
		return func(c runnerv1.RunnerServiceClient) error {
			_, err := c.RemoveWorkload(context.Background(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: force, RemoveVolumes: volumes})
			return err
		}
	}
	const going, gone = "until it is going", "until it is gone"
	for name, c := range map[string]struct {
		call  func(runnerv1.RunnerServiceClient) error
		shown bool
		want  []deletion
	}{
		"stop":                                 {stop(id, 0), true, []deletion{{id, "uid", nil, going}}},
		"stop one not shown yet":               {stop(id, 0), false, []deletion{{id, "", nil, going}}},
		"stop with a grace, by the Pod's name": {stop("workload-"+id, 2), true, []deletion{{id, "uid", ptr(int64(2)), going}}},
		"remove":                               {remove(false, false), true, []deletion{{id, "uid", nil, going}}},
		"remove by force":                      {remove(true, false), true, []deletion{{id, "uid", ptr(int64(0)), gone}}},
		// The Pod comes last: through it the claims are found.
		"remove with volumes": {remove(false, true), true, []deletion{
			{"a", "", nil, going}, {"b", "", nil, going}, {id, "uid-of-" + id, nil, going},
		}},
		"remove with volumes by force, not shown yet": {remove(true, true), false, []deletion{
			{"a", "", ptr(int64(0)), going}, {"b", "", ptr(int64(0)), going}, {id, "uid-of-" + id, ptr(int64(0)), gone},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{mounted: []string{"a", "absent", "b"}}
			if c.shown {
				f.states = map[string]*workload.State{id: {ID: id, UID: "uid"}}
			}
			client, _, _ := serve(t, f)
			if err := c.call(client); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, f.deleted); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
