package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/workload"
)

// awaitLimit bounds the wait for a write to appear in the cache. It is only
// reached when the watch is broken; the write itself has been done.
const awaitLimit = 2 * time.Second

// seen decides by what the cache shows of a Pod, or by an event of it. pod is
// nil if the cache has none; gone is true then and for a deletion.
type seen func(pod *corev1.Pod, gone bool) bool

// waiter is told of every event of one Pod until done is closed.
type waiter struct {
	seen seen
	done chan struct{}
}

// AwaitDeleted returns once reads show that the Pod of workload id is gone, or
// at least going if that is enough, so that a caller sees what it stopped.
func (p *Pods) AwaitDeleted(ctx context.Context, id string, goingIsEnough bool) {
	p.await(ctx, workload.PodName(id), func(pod *corev1.Pod, gone bool) bool {
		return gone || (goingIsEnough && pod.DeletionTimestamp != nil)
	})
}

// await returns when seen says so, within a bound.
func (p *Pods) await(ctx context.Context, name string, seen seen) {
	w := &waiter{seen: seen, done: make(chan struct{})}
	p.register(name, w)
	defer p.unregister(name, w)
	// What was written is on its way: what the cache has is older.
	written := p.writtenNamed(name) != nil
	if pod, err := p.lister.Get(name); !written && seen(pod, err != nil) {
		return
	}
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	select {
	case <-w.done:
	case <-limit.C:
	case <-ctx.Done():
	}
}

func (p *Pods) register(name string, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiters[name] == nil {
		p.waiters[name] = map[*waiter]struct{}{}
	}
	p.waiters[name][w] = struct{}{}
}

func (p *Pods) unregister(name string, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiters[name], w)
	if len(p.waiters[name]) == 0 {
		delete(p.waiters, name)
	}
}

// handler wakes the waiters. The cache is up to date when it is called.
func (p *Pods) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.notify(obj, false) },
		UpdateFunc: func(_, obj any) { p.notify(obj, false) },
		DeleteFunc: func(obj any) {
			if gone, missed := obj.(cache.DeletedFinalStateUnknown); missed {
				obj = gone.Obj
			}
			p.notify(obj, true)
		},
	}
}

func (p *Pods) notify(obj any, gone bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observed(pod)
	for w := range p.waiters[pod.Name] {
		if w.seen(pod, gone) {
			delete(p.waiters[pod.Name], w)
			close(w.done)
		}
	}
}
