//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// startHeld begins a start with a Secret, and returns once hold has it in the middle.
func (r *runner) startHeld(t *testing.T, hold *postHolder) (req *runnerv1.StartWorkloadRequest, result <-chan error) {
	t.Helper()
	req = sleeper()
	req.ImagePullCredentials = []*runnerv1.ImagePullCredential{{Registry: "r.example.com", Username: "u", Password: "p"}}
	done := make(chan error, 1)
	go func() {
		_, err := r.StartWorkload(t.Context(), req)
		done <- err
	}()
	hold.await(t)
	return req, done
}

// TestShutdownInAStart: a start that is on its way when the runner ends is finished if the
// API server answers soon, and else taken back; a caller knows which.
func TestShutdownInAStart(t *testing.T) {
	for name, test := range map[string]struct {
		answersAfter time.Duration
		code         codes.Code
	}{
		"in time":  {time.Second, codes.OK},
		"too late": {time.Hour, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			ns := newNamespace(t)
			cordon(t, ns.name)
			hold := newPostHolder(t, "/secrets")
			hold.slow = 2 * time.Second
			r := startRunner(t, ns.through(t, hold.URL, hold.ca()))
			req, result := r.startHeld(t, hold)
			if err := r.process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, "it says that it ends", func() error {
				if code, body := r.get(t, "/readyz"); code != http.StatusServiceUnavailable || body != "grpc: the service is stopping\n" {
					return fmt.Errorf("it is %d %s", code, body)
				}
				return nil
			})
			time.AfterFunc(test.answersAfter, hold.letGo)
			if err := <-result; status.Code(err) != test.code {
				t.Errorf("the start returns %v, not %s", err, test.code)
			}
			select {
			case err := <-r.exited:
				if err != nil {
					t.Errorf("the runner ended with %v\n%s", err, r.log)
				}
				r.process = nil
			case <-time.After(20 * time.Second):
				t.Fatalf("the runner does not end\n%s", r.log)
			}
			if test.code == codes.OK {
				pod, err := suite.admin.CoreV1().Pods(ns.name).Get(t.Context(), workload.PodName(req.GetWorkloadId()), metav1.GetOptions{})
				if err != nil || len(pod.Spec.SchedulingGates) > 0 {
					t.Errorf("the Pod has gates %v, %v", pod.Spec.SchedulingGates, err)
				}
				return
			}
			// At once: nobody else takes it away.
			if names := r.podNames(t); len(names) > 0 {
				t.Errorf("there is %v\n%s", names, r.log)
			}
			wantNothingOwned(t, ns.name)
		})
	}
}
