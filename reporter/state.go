package reporter

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
	"github.com/agynio/k8s-runner/workload"
)

// Statuses, in the short names of this package.
const (
	starting = runnersv1.WorkloadStatus_WORKLOAD_STATUS_STARTING
	running  = runnersv1.WorkloadStatus_WORKLOAD_STATUS_RUNNING
	stopped  = runnersv1.WorkloadStatus_WORKLOAD_STATUS_STOPPED
	failed   = runnersv1.WorkloadStatus_WORKLOAD_STATUS_FAILED
)

// reasonDeleted is that of a container of which nobody saw the end.
const reasonDeleted = "PodDeleted"

// report is one state of a workload, as the platform is told of it.
type report struct {
	id         string
	status     runnersv1.WorkloadStatus
	containers []*runnersv1.Container
	observedAt *timestamppb.Timestamp
}

// same reports whether r tells the platform nothing that other did not.
func (r *report) same(other *report) bool {
	if r.status != other.status || len(r.containers) != len(other.containers) {
		return false
	}
	for i := range r.containers {
		if !proto.Equal(r.containers[i], other.containers[i]) {
			return false
		}
	}
	return true
}

// reportOf is what s means to the platform.
func reportOf(s *workload.State, at time.Time) *report {
	r := &report{id: s.ID, status: statusOf(s), observedAt: timestamppb.New(at)}
	for _, c := range s.Shown() {
		r.containers = append(r.containers, container(&c))
	}
	return r
}

// statusOf is a status that was observed, and never one that somebody wants. A Pod
// that is going away runs until it has ended. One that has been ready does not start
// again, whatever becomes of its containers.
func statusOf(s *workload.State) runnersv1.WorkloadStatus {
	switch {
	case s.Phase == workload.PhaseFailed:
		return failed
	case s.Phase == workload.PhaseSucceeded:
		return stopped
	case s.Ready || wasReady(s):
		return running
	}
	return starting
}

// wasReady reports whether a Pod that is not ready has been: all its containers had
// started when that changed. Times are whole seconds; where the last start was in that
// very second, a container that has ended decides.
func wasReady(s *workload.State) bool {
	var last time.Time
	var ended bool
	for i := range s.Containers {
		c := &s.Containers[i]
		if c.Role == workload.RoleInit || c.Restarts > 0 {
			continue // it ends before, or has begun again
		}
		if c.StartedAt.IsZero() {
			return false
		}
		if c.StartedAt.After(last) {
			last = c.StartedAt
		}
		ended = ended || c.Status == workload.Terminated
	}
	return !last.IsZero() && (s.ReadyChanged.After(last) || ended && s.ReadyChanged.Equal(last))
}

// finished reports whether nothing comes after status.
func finished(status runnersv1.WorkloadStatus) bool { return status == stopped || status == failed }

// ended is what is reported of a Pod that is gone and was last seen as s: that it
// stopped, unless its own end was seen.
func ended(s *workload.State, at time.Time) *report {
	r := reportOf(s, at)
	if finished(r.status) {
		return r
	}
	r.status = stopped
	for _, c := range r.containers {
		if c.GetStatus() == runnersv1.ContainerStatus_CONTAINER_STATUS_TERMINATED {
			continue
		}
		c.Status, c.Reason = runnersv1.ContainerStatus_CONTAINER_STATUS_TERMINATED, text(reasonDeleted)
		c.Message = text("the Pod was deleted before its end was seen")
	}
	return r
}

func container(c *workload.ContainerState) *runnersv1.Container {
	return &runnersv1.Container{
		ContainerId:  c.RuntimeID,
		Name:         c.Name,
		Role:         roleOf(c.Role),
		Image:        c.Image,
		Status:       containerStatusOf(c.Status),
		Reason:       text(c.Reason),
		Message:      text(c.Message),
		ExitCode:     c.ExitCode,
		RestartCount: c.Restarts,
		StartedAt:    timestamp(c.StartedAt),
		FinishedAt:   timestamp(c.FinishedAt),
	}
}

func roleOf(r workload.Role) runnersv1.ContainerRole {
	switch r {
	case workload.RoleMain:
		return runnersv1.ContainerRole_CONTAINER_ROLE_MAIN
	case workload.RoleSidecar:
		return runnersv1.ContainerRole_CONTAINER_ROLE_SIDECAR
	case workload.RoleInit:
		return runnersv1.ContainerRole_CONTAINER_ROLE_INIT
	}
	return runnersv1.ContainerRole_CONTAINER_ROLE_UNSPECIFIED
}

func containerStatusOf(s workload.Status) runnersv1.ContainerStatus {
	switch s {
	case workload.Waiting:
		return runnersv1.ContainerStatus_CONTAINER_STATUS_WAITING
	case workload.Running:
		return runnersv1.ContainerStatus_CONTAINER_STATUS_RUNNING
	case workload.Terminated:
		return runnersv1.ContainerStatus_CONTAINER_STATUS_TERMINATED
	}
	return runnersv1.ContainerStatus_CONTAINER_STATUS_UNSPECIFIED
}

// text is nil for what is not there.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
