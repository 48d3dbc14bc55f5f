// Package logs streams what containers wrote, line by line and each line once,
// whatever becomes of the connections to the API server on the way.
package logs

import (
	"context"

	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

// Cache shows workloads as the watch brings them.
type Cache interface {
	// Follow calls seen with the state of workload id, nil if it is not there, and
	// again after each change, until seen returns true or ctx ends.
	Follow(ctx context.Context, id string, seen func(*workload.State) bool) error
}

// Logs reads the logs of one namespace.
type Logs struct {
	followed, read clientv1.PodInterface
	cache          Cache
}

// New returns the logs of Pods; those that are followed come through another client
// than those that are read once. A stream holds a connection of theirs for as long as
// it lasts, so that their clients should limit no rate.
func New(followed, read clientv1.PodInterface, cache Cache) *Logs {
	return &Logs{followed: followed, read: read, cache: cache}
}

// Stream sends a container's log until it ends or, if it is followed, as long as
// this run of the container lasts; one that has not started is waited for, and
// has no lines without Follow. That the Pod is deleted or replaced meanwhile is
// Unavailable, and so is an API server or a kubelet that fails for a minute. An
// error of send ends it, as ctx does, whose cause it then returns.
func (l *Logs) Stream(ctx context.Context, req *workload.LogRequest, send func(workload.LogPiece) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watching := watch(ctx, cancel, l.cache, req.Target)
	defer watching.wait()
	defer cancel(nil)
	s := &stream{followed: l.followed, once: l.read, watch: watching, req: req, send: send, memory: newMemory()}
	return s.all(ctx)
}
