package rpc

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// InspectWorkload tells what was asked for and what runs.
func (s *Server) InspectWorkload(_ context.Context, req *runnerv1.InspectWorkloadRequest) (*runnerv1.InspectWorkloadResponse, error) {
	state, err := s.find(req.GetWorkloadId())
	if err != nil {
		return nil, err
	}
	out := &runnerv1.InspectWorkloadResponse{
		Id:           state.ID,
		Name:         state.ID,
		ConfigLabels: state.Labels,
		StateStatus:  strings.ToLower(string(state.Phase)),
		StateRunning: state.Phase == workload.PhaseRunning,
	}
	if main := state.Main(); main != nil {
		out.Image, out.ConfigImage = main.Image, main.ConfigImage
	}
	for _, m := range state.Mounts {
		out.Mounts = append(out.Mounts, mount(m))
	}
	for _, c := range state.Shown() {
		out.Containers = append(out.Containers, container(&c))
	}
	return out, nil
}

// GetWorkloadLabels returns the labels of the Pod.
func (s *Server) GetWorkloadLabels(_ context.Context, req *runnerv1.GetWorkloadLabelsRequest) (*runnerv1.GetWorkloadLabelsResponse, error) {
	state, err := s.find(req.GetWorkloadId())
	if err != nil {
		return nil, err
	}
	return &runnerv1.GetWorkloadLabelsResponse{Labels: state.Labels}, nil
}

func mount(m workload.MountState) *runnerv1.TargetMount {
	out := &runnerv1.TargetMount{Type: "emptydir", Source: m.Volume, Destination: m.Path, ReadOnly: m.ReadOnly}
	if m.Claim != "" {
		out.Type, out.Source = "pvc", m.Claim
	}
	return out
}

func container(c *workload.ContainerState) *runnerv1.WorkloadContainer {
	return &runnerv1.WorkloadContainer{
		ContainerId:  c.RuntimeID,
		Name:         c.Name,
		Role:         protoRole(c.Role),
		Image:        c.Image,
		Status:       protoStatus(c.Status),
		Reason:       text(c.Reason),
		Message:      text(c.Message),
		ExitCode:     c.ExitCode,
		RestartCount: c.Restarts,
		StartedAt:    timestamp(c.StartedAt),
		FinishedAt:   timestamp(c.FinishedAt),
	}
}

func protoRole(r workload.Role) runnerv1.ContainerRole {
	switch r {
	case workload.RoleMain:
		return runnerv1.ContainerRole_CONTAINER_ROLE_MAIN
	case workload.RoleSidecar:
		return runnerv1.ContainerRole_CONTAINER_ROLE_SIDECAR
	case workload.RoleInit:
		return runnerv1.ContainerRole_CONTAINER_ROLE_INIT
	}
	return runnerv1.ContainerRole_CONTAINER_ROLE_UNSPECIFIED
}

func protoStatus(s workload.Status) runnerv1.ContainerStatus {
	switch s {
	case workload.Waiting:
		return runnerv1.ContainerStatus_CONTAINER_STATUS_WAITING
	case workload.Running:
		return runnerv1.ContainerStatus_CONTAINER_STATUS_RUNNING
	case workload.Terminated:
		return runnerv1.ContainerStatus_CONTAINER_STATUS_TERMINATED
	}
	return runnerv1.ContainerStatus_CONTAINER_STATUS_UNSPECIFIED
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
