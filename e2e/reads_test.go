//go:build e2e

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestReadsCostNothing: reads are answered from memory. The API server's own
// audit log has no request for them, and one for each write.
func TestReadsCostNothing(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	cordon(t, r.namespace)
	var ids []string
	for range 30 {
		req := sleeper()
		req.Labels = map[string]string{"workload_key": "k"}
		r.start(t, req)
		ids = append(ids, req.GetWorkloadId())
	}
	before := r.requests(t)
	if before["create pods"] != len(ids) {
		t.Errorf("%d starts took %v", len(ids), before)
	}
	for _, id := range ids {
		r.inspect(t, id)
		if _, err := r.GetWorkloadLabels(t.Context(), &runnerv1.GetWorkloadLabelsRequest{WorkloadId: id}); err != nil {
			t.Fatal(err)
		}
		list, err := r.ListWorkloads(t.Context(), &runnerv1.ListWorkloadsRequest{})
		if err != nil || len(list.GetWorkloads()) != len(ids) {
			t.Fatalf("ListWorkloads: %d workloads, %v", len(list.GetWorkloads()), err)
		}
		if _, err := r.FindWorkloadsByLabels(t.Context(), &runnerv1.FindWorkloadsByLabelsRequest{All: true}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, r.requests(t)); diff != "" {
		t.Errorf("reads reached the API server (-before +after):\n%s", diff)
	}
}

// TestOwnWrites: what a caller has written shows in its next read, and what it
// has deleted does not, a hundred times over from ten callers.
func TestOwnWrites(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	cordon(t, r.namespace)
	for range 10 {
		t.Run("caller", func(t *testing.T) {
			t.Parallel()
			for range 10 {
				req := sleeper()
				r.start(t, req)
				r.inspect(t, req.GetWorkloadId())
				if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: req.GetWorkloadId(), Force: true}); err != nil {
					t.Fatal(err)
				}
				_, err := r.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: req.GetWorkloadId()})
				wantError(t, err, 5, "WORKLOAD_NOT_FOUND")
			}
		})
	}
}
