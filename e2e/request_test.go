//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// sleeper returns a request for a workload that runs until it is stopped, and
// then ends at once.
func sleeper() *runnerv1.StartWorkloadRequest {
	return &runnerv1.StartWorkloadRequest{
		WorkloadId: uuid.NewString(),
		Main:       shell(`trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done`),
	}
}

// shell returns a container that runs script.
func shell(script string) *runnerv1.ContainerSpec {
	return &runnerv1.ContainerSpec{Image: "busybox", Cmd: []string{"sh", "-c", script}}
}

// start starts req and ends it with the test.
func (r *runner) start(t testing.TB, req *runnerv1.StartWorkloadRequest) *runnerv1.StartWorkloadResponse {
	t.Helper()
	resp, err := r.StartWorkload(t.Context(), req)
	if err != nil {
		t.Fatalf("StartWorkload: %v", err)
	}
	return resp
}

func (r *runner) inspect(t testing.TB, id string) *runnerv1.InspectWorkloadResponse {
	t.Helper()
	resp, err := r.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: id})
	if err != nil {
		t.Fatalf("InspectWorkload %s: %v", id, err)
	}
	return resp
}

// await inspects workload id until check is content, and returns what it saw.
func (r *runner) await(t testing.TB, id, what string, check func(*runnerv1.InspectWorkloadResponse) bool) *runnerv1.InspectWorkloadResponse {
	t.Helper()
	var seen *runnerv1.InspectWorkloadResponse
	eventually(t, 60*time.Second, what, func() error {
		if seen = r.inspect(t, id); !check(seen) {
			return fmt.Errorf("it shows %v", seen)
		}
		return nil
	})
	return seen
}

func running(w *runnerv1.InspectWorkloadResponse) bool {
	for _, c := range w.GetContainers() {
		if c.GetRole() != runnerv1.ContainerRole_CONTAINER_ROLE_INIT && c.GetStatus() != runnerv1.ContainerStatus_CONTAINER_STATUS_RUNNING {
			return false
		}
	}
	return w.GetStateRunning()
}

func ended(w *runnerv1.InspectWorkloadResponse) bool {
	return w.GetStateStatus() == "succeeded" || w.GetStateStatus() == "failed"
}

// wantError fails unless err has the code and the token, in its message and in
// its ErrorInfo.
func wantError(t testing.TB, err error, code codes.Code, reason string) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	info := detail[*errdetails.ErrorInfo](s)
	if info.GetReason() != reason || info.GetDomain() != "k8s-runner" {
		t.Errorf("ErrorInfo is %v, want reason %s of domain k8s-runner", info, reason)
	}
}

// detail returns the detail of type T of s, or the zero value.
func detail[T any](s *status.Status) (found T) {
	for _, d := range s.Details() {
		if d, ok := d.(T); ok {
			return d
		}
	}
	return found
}
