//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestExpiredWatch: whatever happens while the watch of Pods is refused as too old,
// reads go from what was to what is, with nothing in between that was not (C43).
func TestExpiredWatch(t *testing.T) {
	for name, inStream := range map[string]bool{"as the answer": false, "in the stream": true} {
		t.Run(name, func(t *testing.T) {
			ns := newNamespace(t)
			expired := newExpirer(t, "pods")
			r := startRunner(t, ns.through(t, expired.URL, expired.ca()))
			cordon(t, ns.name)
			stays, goes := r.sleeping(t), r.sleeping(t)
			expired.expire(3, inStream)
			pods := suite.admin.CoreV1().Pods(ns.name)
			if err := pods.Delete(t.Context(), "workload-"+goes, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			last := 0
			for n := 1; n <= 20; n++ {
				patch := fmt.Appendf(nil, `{"metadata":{"labels":{"step":"%d"}}}`, n)
				if _, err := pods.Patch(t.Context(), "workload-"+stays, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
				last = r.wantStep(t, stays, last)
			}
			eventually(t, 30*time.Second, "reads show all that happened", func() error {
				last = r.wantStep(t, stays, last)
				_, err := r.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: goes})
				if last != 20 || status.Code(err) != codes.NotFound {
					return fmt.Errorf("step %d, and of the other one %w", last, err)
				}
				return nil
			})
			if left := expired.watches.Load(); left > 0 {
				t.Errorf("%d watches more could have been refused", left)
			}
		})
	}
}

// wantStep returns the label step of workload id, which must be there, and not go
// back behind last.
func (r *runner) wantStep(t *testing.T, id string, last int) (step int) {
	t.Helper()
	w, err := r.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: id})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Sscan(w.GetConfigLabels()["step"], &step)
	if step < last {
		t.Errorf("step %d is shown after step %d", step, last)
	}
	return max(step, last)
}
