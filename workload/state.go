package workload

import (
	"slices"
	"time"
)

// State is what the cluster shows of a workload.
type State struct {
	ID      string
	PodName string
	// UID tells this Pod from an earlier one of the same name.
	UID    string
	Labels map[string]string
	// Created is when the Pod was made, to the second.
	Created time.Time
	// Digest is that of the request that made the Pod.
	Digest string
	Phase  Phase
	// Reason and Message are the Pod's own, such as Evicted, or those of the
	// condition that keeps it from being scheduled.
	Reason, Message string
	// Ready is the Pod's Ready condition, ReadyChanged when it last changed, to the
	// second.
	Ready        bool
	ReadyChanged time.Time
	// Terminating is true once a deletion was asked for.
	Terminating bool
	// Containers are in the order init, main, sidecars.
	Containers []ContainerState
	// Mounts are those of the main container.
	Mounts []MountState
	// Claims are the names of the claims that the Pod uses.
	Claims []string
}

// Main returns the main container, or nil if the Pod has none.
func (s *State) Main() *ContainerState {
	for i := range s.Containers {
		if s.Containers[i].Role == RoleMain {
			return &s.Containers[i]
		}
	}
	return nil
}

// Shown are the containers as others are told of them: what keeps a Pod from being
// scheduled, or evicted it, is the Pod's own, and they look for it at the main container.
func (s *State) Shown() []ContainerState {
	shown := slices.Clone(s.Containers)
	for i := range shown {
		if c := &shown[i]; c.Role == RoleMain && c.Reason == "" {
			c.Reason, c.Message = s.Reason, s.Message
		}
	}
	return shown
}

// Phase is the phase of a Pod, as Kubernetes spells it.
type Phase string

// Phases of a Pod that has started its containers, and that has ended.
const (
	PhaseRunning   Phase = "Running"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
)

// Role is the part that a container plays.
type Role int

// The roles.
const (
	RoleMain Role = iota + 1
	RoleSidecar
	RoleInit
)

// Status is the state of a container.
type Status int

// The states. A container that the kubelet has not reported is Waiting.
const (
	Waiting Status = iota + 1
	Running
	Terminated
)

// ContainerState is what the cluster shows of a container.
type ContainerState struct {
	Name string
	Role Role
	// ConfigImage is the image as asked for, Image as it runs.
	ConfigImage, Image string
	// RuntimeID is the container runtime's id, empty before it exists.
	RuntimeID string
	Status    Status
	// Reason and Message are the kubelet's, empty if it gave none.
	Reason, Message string
	// ExitCode is nil unless the container has terminated.
	ExitCode *int32
	Restarts int32
	// StartedAt and FinishedAt are zero if they have not come.
	StartedAt, FinishedAt time.Time
}

// MountState is a mount of a claim or an ephemeral volume.
type MountState struct {
	// Claim is empty for an ephemeral volume.
	Claim    string
	Volume   string
	Path     string
	ReadOnly bool
}
