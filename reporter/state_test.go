package reporter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
	"github.com/agynio/k8s-runner/workload"
)

func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

// TestStatus: what a Pod is to the platform.
func TestStatus(t *testing.T) {
	runs := workload.ContainerState{Role: workload.RoleMain, Status: workload.Running, StartedAt: at(10)}
	side := workload.ContainerState{Role: workload.RoleSidecar, Status: workload.Running, StartedAt: at(12)}
	crashed := workload.ContainerState{Role: workload.RoleSidecar, Status: workload.Terminated, StartedAt: at(12)}
	restarted := workload.ContainerState{Role: workload.RoleSidecar, Status: workload.Running, StartedAt: at(90), Restarts: 1}
	waits := workload.ContainerState{Role: workload.RoleSidecar, Status: workload.Waiting}
	begun := workload.ContainerState{Role: workload.RoleInit, Status: workload.Terminated, StartedAt: at(1)}
	for name, c := range map[string]struct {
		state workload.State
		want  runnersv1.WorkloadStatus
	}{
		"pending":                     {workload.State{Phase: "Pending", ReadyChanged: at(1)}, starting},
		"unknown":                     {workload.State{}, starting},
		"ready":                       {workload.State{Phase: workload.PhaseRunning, Ready: true}, running},
		"ready and going away":        {workload.State{Phase: workload.PhaseRunning, Ready: true, Terminating: true}, running},
		"not ready yet":               {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(1), Containers: []workload.ContainerState{begun, runs, side}}, starting},
		"one has not started":         {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(50), Containers: []workload.ContainerState{runs, waits}}, starting},
		"ready no more":               {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(50), Containers: []workload.ContainerState{begun, runs, side}}, running},
		"a sidecar crashed":           {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(50), Containers: []workload.ContainerState{runs, crashed}}, running},
		"it crashed at once":          {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(12), Containers: []workload.ContainerState{runs, crashed}}, running},
		"it crashed before":           {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(11), Containers: []workload.ContainerState{runs, crashed}}, starting},
		"the last started just now":   {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(12), Containers: []workload.ContainerState{runs, side}}, starting},
		"a native sidecar began anew": {workload.State{Phase: workload.PhaseRunning, ReadyChanged: at(50), Containers: []workload.ContainerState{runs, restarted}}, running},
		"succeeded":                   {workload.State{Phase: workload.PhaseSucceeded}, stopped},
		"failed":                      {workload.State{Phase: workload.PhaseFailed, Ready: true}, failed},
	} {
		if got := statusOf(&c.state); got != c.want {
			t.Errorf("%s is %s, not %s", name, got, c.want)
		}
	}
}

// TestReport: nothing of what is known of a container is left out.
func TestReport(t *testing.T) {
	code := int32(137)
	s := &workload.State{
		ID: "a", Phase: "Pending", Reason: "Unschedulable", Message: "0/1 nodes are available",
		Containers: []workload.ContainerState{
			{Name: "init", Role: workload.RoleInit, ConfigImage: "i", Image: "docker.io/i", RuntimeID: "containerd://1", Status: workload.Terminated,
				Reason: "OOMKilled", Message: "m", ExitCode: &code, Restarts: 2, StartedAt: at(1), FinishedAt: at(2)},
			{Name: "main", Role: workload.RoleMain, Image: "x", Status: workload.Waiting},
			{Name: "side", Role: workload.RoleSidecar, Image: "y", Status: workload.Running, StartedAt: at(3)},
		},
	}
	want := []*runnersv1.Container{
		{ContainerId: "containerd://1", Name: "init", Role: runnersv1.ContainerRole_CONTAINER_ROLE_INIT, Image: "docker.io/i",
			Status: runnersv1.ContainerStatus_CONTAINER_STATUS_TERMINATED, Reason: text("OOMKilled"), Message: text("m"), ExitCode: &code,
			RestartCount: 2, StartedAt: timestamppb.New(at(1)), FinishedAt: timestamppb.New(at(2))},
		{Name: "main", Role: runnersv1.ContainerRole_CONTAINER_ROLE_MAIN, Image: "x", Status: runnersv1.ContainerStatus_CONTAINER_STATUS_WAITING,
			Reason: text("Unschedulable"), Message: text("0/1 nodes are available")},
		{Name: "side", Role: runnersv1.ContainerRole_CONTAINER_ROLE_SIDECAR, Image: "y", Status: runnersv1.ContainerStatus_CONTAINER_STATUS_RUNNING, StartedAt: timestamppb.New(at(3))},
	}
	r := reportOf(s, at(9))
	if diff := cmp.Diff(want, r.containers, protocmp.Transform()); diff != "" || r.id != "a" || !r.observedAt.AsTime().Equal(at(9)) {
		t.Errorf("it is %+v (-want +got):\n%s", r, diff)
	}
	// Of a Pod that is gone no container runs, and what is known of an end stays.
	for _, i := range []int{1, 2} {
		want[i].Status, want[i].Reason = runnersv1.ContainerStatus_CONTAINER_STATUS_TERMINATED, text(reasonDeleted)
		want[i].Message = text("the Pod was deleted before its end was seen")
	}
	r = ended(s, at(9))
	if diff := cmp.Diff(want, r.containers, protocmp.Transform()); diff != "" || r.status != stopped {
		t.Errorf("it ends as %s (-want +got):\n%s", r.status, diff)
	}
	s.Phase = workload.PhaseFailed
	if r := ended(s, at(9)); r.status != failed || r.containers[2].GetStatus() != runnersv1.ContainerStatus_CONTAINER_STATUS_RUNNING {
		t.Errorf("a failed one ends as %v", r)
	}
}
