package logs

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agynio/k8s-runner/cluster/again"
	"github.com/agynio/k8s-runner/workload"
)

// drainLimit bounds the time in which the last lines of a Pod that is gone come.
const drainLimit = 2 * time.Second

// watcher is what the cache shows of one container. It wakes those who wait;
// what they act on they ask the API server.
type watcher struct {
	// changed has an item after a change.
	changed chan struct{}
	// over is true once the container has ended.
	over  atomic.Bool
	ended chan struct{}
}

// watch watches until ctx ends or the Pod is gone, shortly after which it
// cancels what reads its log.
func watch(ctx context.Context, cancel context.CancelCauseFunc, cache Cache, target workload.Target) *watcher {
	w := &watcher{changed: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		if cache.Follow(ctx, target.ID, func(s *workload.State) bool { return w.see(s, target) }) != nil {
			return // nobody reads any more
		}
		if again.Wait(ctx, drainLimit, nil) == nil {
			cancel(deleted(target))
		}
	}()
	return w
}

// see notes a state of the workload, and reports whether it was the last one.
func (w *watcher) see(s *workload.State, target workload.Target) (last bool) {
	gone := s == nil || s.UID != target.UID
	if !gone {
		over := slices.ContainsFunc(s.Containers, func(c workload.ContainerState) bool {
			return c.Name == target.Container && c.Status == workload.Terminated
		})
		w.over.Store(over)
	}
	select {
	case w.changed <- struct{}{}:
	default: // whoever waits is woken already
	}
	return gone
}

// wait waits until the watcher has ended.
func (w *watcher) wait() { <-w.ended }
