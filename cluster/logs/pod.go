package logs

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

// answerLimit bounds the wait for an answer to begin.
const answerLimit = 30 * time.Second

// view is what the API server has of a container.
type view struct {
	// begun is true once there is something to read; over, when nothing is added
	// to it any more.
	begun, over bool
	// restarts counts the runs of the container before this one.
	restarts int32
	// previous is true if the log is that of the run before the present or next one.
	previous bool
	// killed is true if the container is over because its Pod is being deleted.
	killed bool
}

// look asks the API server for the container. An answer from the cache would not
// do: right after an outage it may show an earlier Pod of the name, or a
// container that has ended as one that runs.
func (s *stream) look(ctx context.Context) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	pod, err := s.once.Get(ctx, workload.PodName(s.req.Target.ID), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != s.req.Target.UID:
		return view{}, deleted(s.req.Target)
	case err != nil:
		return view{}, fmt.Errorf("reading the Pod of %s: %w", s.req.Target.ID, err)
	}
	return viewOf(pod, s.req.Target.Container), nil
}

func viewOf(pod *corev1.Pod, container string) view {
	terminal := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	going := pod.DeletionTimestamp != nil
	if i < 0 {
		return view{over: terminal, killed: going} // an evicted Pod has no statuses
	}
	status := &statuses[i]
	end, again := status.State.Terminated, status.State.Waiting != nil
	if again {
		end = status.LastTerminationState.Terminated // it is going to be started again
	}
	v := view{restarts: status.RestartCount, previous: again && end != nil}
	v.begun = status.State.Running != nil || end != nil
	v.over = end != nil || terminal
	v.killed = going && (end == nil || !end.FinishedAt.Time.Before(deletion(pod)))
	return v
}

// deletion is when the deletion of pod was asked for; Kubernetes notes when it is
// due.
func deletion(pod *corev1.Pod) time.Time {
	grace := time.Duration(0)
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	return pod.DeletionTimestamp.Add(-grace)
}

// retryDeleted is when to ask again, though not for the same.
const retryDeleted = time.Second

func deleted(target workload.Target) *workload.Error {
	return workload.Errorf(workload.Unavailable, "workload_deleted", "the workload %s was deleted", target.ID).Retry(retryDeleted)
}

// lost says that lines are missing, or may be, which no new request brings back.
func lost(target workload.Target, why string) *workload.Error {
	return workload.Errorf(workload.Unavailable, "log_lines_lost", "lines of the log of %s may be missing: %s", target.Container, why).Retry(retryDeleted)
}
