package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/workload"
)

// awaitLimit bounds the wait for a write to appear in the cache. It is only
// reached when the watch is broken, or a finalizer keeps the object; the write
// itself has been done.
const (
	awaitLimit = 2 * time.Second
	// askLimit bounds the question that is asked then.
	askLimit = time.Second
)

// seen decides by an event of an object, or by what the cache has of it. gone is
// true for a deletion.
type seen[T metav1.Object] func(object T, gone bool) bool

// waiter is told of every event of one object until done is closed.
type waiter[T metav1.Object] struct {
	seen seen[T]
	done chan struct{}
}

// retryHeld is when to ask again for the end of an object that finalizers keep.
const retryHeld = 2 * time.Second

// Deleting runs del, which deletes the object called name, and returns its error
// once reads show what it did: that the object is gone or, if that is enough,
// going. If del says that it is absent, NotFound, reads show that. If it stays
// because of finalizers, that is FailedPrecondition.
//
// The events are followed from before del on: an object of which the cache has
// nothing may be one that another replica has just made, whose events are all
// still to come.
func (w *watched[T]) Deleting(ctx context.Context, name string, goingIsEnough bool, del func() error) error {
	before, shown := w.named(name)
	shows := func(object T, gone bool) bool {
		if shown && object.GetUID() != before.GetUID() {
			return false // of an earlier one, or of a later one
		}
		return gone || (goingIsEnough && object.GetDeletionTimestamp() != nil)
	}
	waiting := w.register(name, shows)
	defer w.unregister(name, waiting)
	err := del()
	var domain *workload.Error
	absent := errors.As(err, &domain) && domain.Kind == workload.NotFound
	if err != nil && !absent {
		return err
	}
	if absent {
		if shown {
			w.hide(name, before.GetUID())
		}
		return err
	}
	if _, pending := w.writtenNamed(name); !pending { // what was written is newer than the cache
		if object, cached := w.cached(name); cached && shows(object, false) {
			return nil
		}
	}
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	select {
	case <-waiting.done:
		return nil
	case <-limit.C:
	case <-ctx.Done():
	}
	if err := w.ask(ctx, name, before, shown); err != nil {
		return err
	}
	object, there := w.named(name)
	if there && !shows(object, false) && object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) > 0 {
		return workload.Errorf(workload.FailedPrecondition, "workload_terminating",
			"%s is being deleted, but stays until its finalizers are taken off: %s", name, strings.Join(object.GetFinalizers(), ", ")).Retry(retryHeld)
	}
	return nil
}

// ask has reads show what the API server has of the object called name, which was
// deleted, where the watch does not tell. before is what they show until then, if
// shown.
func (w *watched[T]) ask(ctx context.Context, name string, before T, shown bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit) // the caller's time may be over
	defer cancel()
	now, err := w.kind.get(ctx, w.client, w.namespace, name)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return workload.Errorf(workload.Unavailable, "kubernetes_unavailable",
			"%s is being deleted, and the API server does not say how far that is", name).Retry(retryHeld).Because(err)
	}
	if shown && (gone || now.GetUID() != before.GetUID()) {
		w.hide(name, before.GetUID())
	}
	if !gone {
		w.show(now)
	}
	return nil
}

func (w *watched[T]) register(name string, seen seen[T]) *waiter[T] {
	waiting := &waiter[T]{seen: seen, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(name, waiting)
	return waiting
}

// add has waiting told of the events of the object called name. The caller holds
// w.mu.
func (w *watched[T]) add(name string, waiting *waiter[T]) {
	if w.waiters[name] == nil {
		w.waiters[name] = map[*waiter[T]]struct{}{}
	}
	w.waiters[name][waiting] = struct{}{}
}

func (w *watched[T]) unregister(name string, waiting *waiter[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters[name], waiting)
	if len(w.waiters[name]) == 0 {
		delete(w.waiters, name)
	}
}

// handler wakes the waiters. The cache is up to date when it is called.
func (w *watched[T]) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.notify(object, false) },
		UpdateFunc: func(_, object any) { w.notify(object, false) },
		DeleteFunc: func(object any) {
			if gone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = gone.Obj
			}
			w.notify(object, true)
		},
	}
}

func (w *watched[T]) notify(item any, gone bool) {
	object, ok := item.(T)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observed(object, gone)
	for waiting := range w.waiters[object.GetName()] {
		if waiting.seen(object, gone) {
			delete(w.waiters[object.GetName()], waiting)
			close(waiting.done)
		}
	}
}
