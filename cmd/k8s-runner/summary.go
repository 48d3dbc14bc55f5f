package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// Short names of what the wire calls at length.
const (
	roleMain    = runnerv1.ContainerRole_CONTAINER_ROLE_MAIN
	roleSidecar = runnerv1.ContainerRole_CONTAINER_ROLE_SIDECAR
	roleInit    = runnerv1.ContainerRole_CONTAINER_ROLE_INIT
	waiting     = runnerv1.ContainerStatus_CONTAINER_STATUS_WAITING
	running     = runnerv1.ContainerStatus_CONTAINER_STATUS_RUNNING
	terminated  = runnerv1.ContainerStatus_CONTAINER_STATUS_TERMINATED
)

// summary is a workload in the few words of a table.
type summary struct {
	*runnerv1.InspectWorkloadResponse
}

// mainContainer returns the main container. It is nil if there is none, which the
// getters of a message bear.
func (s summary) mainContainer() *runnerv1.WorkloadContainer {
	for _, c := range s.GetContainers() {
		if c.GetRole() == roleMain {
			return c
		}
	}
	return nil
}

// ended reports whether the main container is over, or the whole Pod.
func (s summary) ended() bool {
	phase := s.GetStateStatus()
	return phase == "succeeded" || phase == "failed" || s.mainContainer().GetStatus() == terminated
}

// running reports whether the main container runs and the others have started.
func (s summary) running() bool {
	return s.GetStateRunning() && s.mainContainer().GetStatus() == running
}

// succeeded reports whether a workload that ended did what it should.
func (s summary) succeeded() bool {
	return s.GetStateStatus() == "succeeded" || s.GetStateStatus() == "running" && s.mainContainer().GetExitCode() == 0
}

// status is one word or two, as in kubectl get pods: how it ended, what it
// waits for, or the phase.
func (s summary) status() string {
	if s.ended() {
		return s.ending()
	}
	for _, c := range s.GetContainers() {
		if c.GetStatus() == waiting && c.GetReason() != "" {
			return ofRole(c, c.GetReason())
		}
	}
	if s.GetStateStatus() == "" {
		return "Unknown"
	}
	return strings.ToUpper(s.GetStateStatus()[:1]) + s.GetStateStatus()[1:]
}

// ending names what ended the workload, such as Completed or OOMKilled (137).
func (s summary) ending() string {
	culprit := s.culprit()
	switch {
	case culprit.GetExitCode() != 0:
		return ofRole(culprit, fmt.Sprintf("%s (%d)", cmp.Or(culprit.GetReason(), "Error"), culprit.GetExitCode()))
	case s.succeeded():
		return cmp.Or(culprit.GetReason(), "Completed")
	}
	return cmp.Or(culprit.GetReason(), "Failed")
}

// culprit is the main container unless another one made the Pod fail.
func (s summary) culprit() *runnerv1.WorkloadContainer {
	main := s.mainContainer()
	if s.GetStateStatus() != "failed" || main.GetExitCode() != 0 {
		return main
	}
	for _, c := range s.GetContainers() {
		if c.GetExitCode() != 0 {
			return c
		}
	}
	return main
}

// ready counts the containers that run, init containers apart.
func (s summary) ready() string {
	up, all := 0, 0
	for _, c := range s.GetContainers() {
		if c.GetRole() == roleInit {
			continue
		}
		all++
		if c.GetStatus() == running {
			up++
		}
	}
	return fmt.Sprintf("%d/%d", up, all)
}

func (s summary) restarts() int32 {
	var sum int32
	for _, c := range s.GetContainers() {
		sum += c.GetRestartCount()
	}
	return sum
}

// waits says for each container that has not started what holds it back.
func (s summary) waits() string {
	var texts []string
	for _, c := range s.GetContainers() {
		if c.GetStatus() != waiting {
			continue
		}
		text := c.GetName() + ": " + cmp.Or(c.GetReason(), "waiting")
		if c.GetMessage() != "" {
			text += " (" + c.GetMessage() + ")"
		}
		texts = append(texts, text)
	}
	return printable(strings.Join(texts, ", "))
}

// age is the time since c started, such as 5m, or - if it has not.
func age(c *runnerv1.WorkloadContainer, now time.Time) string {
	if c.GetStartedAt() == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(c.GetStartedAt().AsTime())))
}

// ofRole says whose status it is, unless the main container's.
func ofRole(c *runnerv1.WorkloadContainer, text string) string {
	switch c.GetRole() {
	case roleInit:
		return "Init:" + text
	case roleSidecar:
		return "Sidecar:" + text
	}
	return text
}
