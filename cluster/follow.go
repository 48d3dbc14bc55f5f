package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/workload"
)

// Follow calls seen with the state of workload id, nil if it is not there, and
// again after each change, until seen returns true or ctx ends, whose cause it
// then returns. Calls never overlap. seen must not wait for anything.
func (p *Pods) Follow(ctx context.Context, id string, seen func(*workload.State) bool) error {
	name := workload.PodName(id)
	waiting := &waiter[*corev1.Pod]{done: make(chan struct{}), seen: func(pod *corev1.Pod, gone bool) bool {
		if gone {
			return seen(nil)
		}
		return seen(state(pod))
	}}
	p.mu.Lock()
	// An event whose change is not in the cache yet is told after this.
	enough := seen(p.now(name))
	if !enough {
		p.add(name, waiting)
	}
	p.mu.Unlock()
	if enough {
		return nil
	}
	defer p.unregister(name, waiting)
	select {
	case <-waiting.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Observe has seen called with each state that the watch brings of any workload, and
// with the last one, gone, when its Pod is deleted. Calls never overlap. It is to be
// called before Run.
func (p *Pods) Observe(seen func(state *workload.State, gone bool)) error {
	tell := func(item any, gone bool) {
		if pod, ok := item.(*corev1.Pod); ok {
			seen(state(pod), gone)
		}
	}
	_, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(item any) { tell(item, false) },
		UpdateFunc: func(_, item any) { tell(item, false) },
		DeleteFunc: func(item any) {
			if missed, ok := item.(cache.DeletedFinalStateUnknown); ok {
				item = missed.Obj
			}
			tell(item, true)
		},
	})
	if err != nil {
		return fmt.Errorf("watching the states of %s: %w", p.kind.plural, err)
	}
	return nil
}

// now is the state of the Pod called name, or nil. The caller holds p.mu.
func (p *Pods) now(name string) *workload.State {
	if written, pending := p.written.objects[name]; pending { // it is newer than the cache
		return state(written.object)
	}
	if pod, ok := p.cached(name); ok && !p.hidden(pod) {
		return state(pod)
	}
	return nil
}
