//go:build e2e

package e2e

import (
	"testing"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const (
	waiting    = runnerv1.ContainerStatus_CONTAINER_STATUS_WAITING
	terminated = runnerv1.ContainerStatus_CONTAINER_STATUS_TERMINATED
)

// TestStates: what the kubelet says of a container is there to be read.
func TestStates(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	for _, test := range []struct {
		name   string
		change func(*runnerv1.StartWorkloadRequest)
		phase  string
		want   map[string]func(*runnerv1.WorkloadContainer) bool
	}{
		{
			name:   "an exit code",
			change: func(q *runnerv1.StartWorkloadRequest) { q.Main = shell("exit 42") },
			phase:  "failed",
			want: map[string]func(*runnerv1.WorkloadContainer) bool{"main": func(c *runnerv1.WorkloadContainer) bool {
				return c.GetStatus() == terminated && c.GetExitCode() == 42 && c.GetReason() == "Error" &&
					!c.GetFinishedAt().AsTime().Before(c.GetStartedAt().AsTime())
			}},
		},
		{
			name:   "success",
			change: func(q *runnerv1.StartWorkloadRequest) { q.Main = shell("exit 0") },
			phase:  "succeeded",
			want: map[string]func(*runnerv1.WorkloadContainer) bool{"main": func(c *runnerv1.WorkloadContainer) bool {
				return c.ExitCode != nil && c.GetExitCode() == 0 && c.GetReason() == "Completed"
			}},
		},
		{
			name:   "an image that is nowhere",
			change: func(q *runnerv1.StartWorkloadRequest) { q.Main.Image = "nope.invalid/x:1" },
			phase:  "pending",
			want: map[string]func(*runnerv1.WorkloadContainer) bool{"main": func(c *runnerv1.WorkloadContainer) bool {
				return c.GetStatus() == waiting && (c.GetReason() == "ErrImagePull" || c.GetReason() == "ImagePullBackOff") && c.GetMessage() != ""
			}},
		},
		{
			name: "an init container that fails",
			change: func(q *runnerv1.StartWorkloadRequest) {
				q.InitContainers = []*runnerv1.ContainerSpec{shell("exit 3")}
			},
			phase: "failed",
			want: map[string]func(*runnerv1.WorkloadContainer) bool{
				"init-1": func(c *runnerv1.WorkloadContainer) bool { return c.GetExitCode() == 3 },
				"main":   func(c *runnerv1.WorkloadContainer) bool { return c.GetStatus() == waiting && c.ExitCode == nil },
			},
		},
		{
			name: "a native sidecar",
			change: func(q *runnerv1.StartWorkloadRequest) {
				side := shell("trap 'exit 0' TERM; sleep 1000 & wait")
				side.Name = "side"
				side.AdditionalProperties = map[string]string{"restart_policy": "Always"}
				q.InitContainers = []*runnerv1.ContainerSpec{side}
			},
			phase: "running",
			want: map[string]func(*runnerv1.WorkloadContainer) bool{"side": func(c *runnerv1.WorkloadContainer) bool {
				return c.GetRole() == runnerv1.ContainerRole_CONTAINER_ROLE_SIDECAR && c.GetStartedAt() != nil
			}},
		},
		{
			name:   "a command that is not there",
			change: func(q *runnerv1.StartWorkloadRequest) { q.Main.Entrypoint = "/no/such/command" },
			phase:  "failed",
			want: map[string]func(*runnerv1.WorkloadContainer) bool{"main": func(c *runnerv1.WorkloadContainer) bool {
				return c.GetStatus() == terminated && c.GetExitCode() == 128 && c.GetReason() == "StartError"
			}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := sleeper()
			test.change(req)
			r.start(t, req)
			r.await(t, req.GetWorkloadId(), test.name+" is shown", func(w *runnerv1.InspectWorkloadResponse) bool {
				return w.GetStateStatus() == test.phase && shows(w, test.want)
			})
		})
	}
}

func shows(w *runnerv1.InspectWorkloadResponse, want map[string]func(*runnerv1.WorkloadContainer) bool) bool {
	seen := 0
	for _, c := range w.GetContainers() {
		if check, asked := want[c.GetName()]; asked && check(c) {
			seen++
		}
	}
	return seen == len(want)
}

// TestUnschedulable: a Pod that no node takes says why.
func TestUnschedulable(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	cordon(t, r.namespace)
	req := sleeper()
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the cause is shown", func(w *runnerv1.InspectWorkloadResponse) bool {
		main := w.GetContainers()[0]
		return w.GetStateStatus() == "pending" && main.GetStatus() == waiting && main.GetReason() == "Unschedulable" && main.GetMessage() != ""
	})
}
