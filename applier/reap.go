package applier

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agynio/k8s-runner/workload"
)

// Reap deletes the Pod of a start that nobody has finished, and reports whether
// it did. What has become another one since it was read stays, such as a Pod
// whose gate has been lifted; so does a Pod that a start of this Applier is busy
// with. A start elsewhere that loses its Pod begins anew.
func (a *Applier) Reap(ctx context.Context, pod workload.Unfinished) (bool, error) {
	if a.busy.with(pod.Pod) {
		return false, nil
	}
	err := a.pods.Delete(ctx, pod.Pod, metav1.DeleteOptions{Preconditions: exactly(types.UID(pod.UID), pod.Version)})
	if apierrors.IsNotFound(err) || err != nil && conflict(err) {
		return false, nil
	}
	return err == nil, a.explain(err, "taking away", pod.Pod)
}

// busy counts the starts that are on their way, by Pod.
type busy struct {
	mu     sync.Mutex
	starts map[string]int
}

// enter notes a start of the Pod called name, which ends with leave.
func (b *busy) enter(name string) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starts[name]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.starts[name]--; b.starts[name] == 0 {
			delete(b.starts, name)
		}
	}
}

func (b *busy) with(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.starts[name] > 0
}
