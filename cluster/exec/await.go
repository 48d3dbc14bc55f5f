package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agynio/k8s-runner/cluster/again"
	"github.com/agynio/k8s-runner/workload"
)

const (
	// startLimit bounds the wait for a container to run.
	startLimit = 30 * time.Second
	// retrySoon is when to ask again.
	retrySoon = 2 * time.Second
)

// notStarted is the answer to a command that could not begin.
func notStarted(kind workload.Kind, format string, args ...any) *workload.Error {
	return workload.Errorf(kind, "exec_start_failed", format, args...)
}

var errLate = errors.New("the container does not run yet")

// awaitRunning waits for the container to run.
func (e *Executor) awaitRunning(ctx context.Context, target workload.Target) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errLate)
	defer cancel()
	var result error
	waiting := "it waits for a node"
	err := e.pods.Follow(ctx, target.ID, func(state *workload.State) (done bool) {
		done, waiting, result = runs(state, target)
		return done
	})
	switch {
	case err == nil:
		return result
	case errors.Is(err, errLate):
		return notStarted(workload.Unavailable, "the container %s does not run after %s: %s", target.Container, startLimit, waiting).Retry(retrySoon)
	}
	end := endingOf(ctx, &workload.Command{})
	return notStarted(workload.Unavailable, "%s", end.cause)
}

// runs reports whether the wait for target is over. Until then it says what the
// container waits for.
func runs(state *workload.State, target workload.Target) (done bool, waiting string, err error) {
	if state == nil || state.UID != target.UID {
		return true, "", notStarted(workload.NotFound, "the workload %s is gone", target.ID)
	}
	i := slices.IndexFunc(state.Containers, func(c workload.ContainerState) bool { return c.Name == target.Container })
	if i < 0 {
		return true, "", notStarted(workload.NotFound, "the workload %s has no container %s", target.ID, target.Container)
	}
	switch c := &state.Containers[i]; {
	case c.Status == workload.Running:
		return true, "", nil
	case c.Status == workload.Terminated:
		return true, "", notStarted(workload.FailedPrecondition, "the container %s has ended: %s", target.Container, c.Reason)
	case state.Phase == workload.PhaseFailed || state.Phase == workload.PhaseSucceeded:
		return true, "", notStarted(workload.FailedPrecondition, "the workload %s has ended: %s %s", target.ID, state.Reason, state.Message)
	case c.Reason != "":
		return false, fmt.Sprintf("%s %s", c.Reason, c.Message), nil
	default:
		return false, fmt.Sprintf("%s %s", state.Reason, state.Message), nil
	}
}

// causePodEnds is told of a command that went with its container.
const causePodEnds = "the workload was deleted, or its container ended"

// watchPod ends a command whose Pod is deleted, or whose container ended. One that
// began while the Pod was going lasts until it is gone.
func (x *execution) watchPod(ctx context.Context) {
	target, first, wasGoing := x.command.Target, true, false
	err := x.executor.pods.Follow(ctx, target.ID, func(state *workload.State) bool {
		if first {
			first, wasGoing = false, state != nil && state.Terminating
		}
		if state == nil || state.UID != target.UID || state.Terminating && !wasGoing {
			return true
		}
		done, _, err := runs(state, target)
		return done && err != nil
	})
	if err != nil {
		return // the command is over
	}
	x.podEnds.Store(true)
	// The status of the process may be on its way.
	if again.Wait(ctx, statusLimit, nil) == nil {
		x.end(&ending{reason: workload.RunnerError, cause: causePodEnds})
	}
}
