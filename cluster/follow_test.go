package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/agynio/k8s-runner/workload"
)

// TestFollow sees what is there and then every change, until it has seen enough.
func TestFollow(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		var phases []workload.Phase
		ended := make(chan error)
		go func() {
			ended <- p.Follow(t.Context(), id, func(s *workload.State) bool {
				if s == nil {
					phases = append(phases, "gone")
					return true
				}
				phases = append(phases, s.Phase)
				return false
			})
		}()
		synctest.Wait()
		update(t, client, aPod(version("2"), phase(corev1.PodRunning)))
		synctest.Wait()
		remove(t, client)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(phases) != 3 || phases[0] != "Pending" || phases[1] != "Running" || phases[2] != "gone" {
			t.Errorf("it saw %v", phases)
		}
		if len(p.waiters) > 0 {
			t.Error("its waiter stays behind")
		}
	}, aPod())
}

func TestFollowEndsAtOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		calls := 0
		if err := p.Follow(t.Context(), id, func(s *workload.State) bool { calls++; return s == nil }); err != nil || calls != 1 {
			t.Errorf("after %d calls it returns %v", calls, err)
		}
	})
}

func TestFollowEndsWithItsCaller(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := p.Follow(ctx, id, func(*workload.State) bool { return false }); !errors.Is(err, why) {
			t.Errorf("it returns %v", err)
		}
		if len(p.waiters) > 0 {
			t.Error("its waiter stays behind")
		}
	}, aPod())
}
