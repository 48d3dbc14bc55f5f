package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

// awaits tells how long AwaitDeleted waits while the cluster changes.
func awaits(t *testing.T, p *Pods, goingIsEnough bool, change func()) time.Duration {
	t.Helper()
	start := time.Now()
	done := make(chan time.Duration, 1)
	go func() {
		p.AwaitDeleted(context.Background(), id, goingIsEnough)
		done <- time.Since(start)
	}()
	synctest.Wait()
	change()
	took := <-done
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiters) > 0 {
		t.Errorf("%d waiters stay behind", len(p.waiters))
	}
	return took
}

func TestAwaitDeleted(t *testing.T) {
	nothing := func(*testing.T, *fake.Clientset) {}
	for name, c := range map[string]struct {
		there         bool
		goingIsEnough bool
		change        func(t *testing.T, client *fake.Clientset)
		want          time.Duration
	}{
		"absent":                   {false, false, nothing, 0},
		"absent, going is enough":  {false, true, nothing, 0},
		"deleted":                  {true, false, remove, 0},
		"deleted, going is enough": {true, true, remove, 0},
		"going":                    {true, true, func(t *testing.T, client *fake.Clientset) { update(t, client, aPod(version("2"), going)) }, 0},
		"going is not enough":      {true, false, func(t *testing.T, client *fake.Clientset) { update(t, client, aPod(version("2"), going)) }, awaitLimit},
		"another change":           {true, true, func(t *testing.T, client *fake.Clientset) { update(t, client, aPod(version("2"))) }, awaitLimit},
		"nothing":                  {true, true, nothing, awaitLimit},
		"another Pod":              {true, true, func(t *testing.T, client *fake.Clientset) { create(t, client, aPod(named("b"))) }, awaitLimit},
	} {
		t.Run(name, func(t *testing.T) {
			test := func(t *testing.T, p *Pods, client *fake.Clientset) {
				if took := awaits(t, p, c.goingIsEnough, func() { c.change(t, client) }); took != c.want {
					t.Errorf("it waits %v instead of %v", took, c.want)
				}
			}
			if c.there {
				inCluster(t, test, aPod())
			} else {
				inCluster(t, test)
			}
		})
	}
}

// TestAwaitDeletedOfAWrittenPod: a Pod that was written and that the watch has
// not brought yet is shown, so it is not gone.
func TestAwaitDeletedOfAWrittenPod(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"))))
		took := awaits(t, p, true, func() {
			time.Sleep(time.Second) // of the test's own time
			create(t, client, aPod(version("5")))
			update(t, client, aPod(version("6"), going))
		})
		if s, ok := p.Get(id); took != time.Second || !ok || !s.Terminating {
			t.Errorf("it waits %v, and Get returns %v, %v", took, s, ok)
		}
	})
}

func TestAwaitDeletedEndsWithTheCall(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		p.AwaitDeleted(ctx, id, true)
		if took := time.Since(start); took != time.Second {
			t.Errorf("it waits %v", took)
		}
	}, aPod())
}

// TestManyAwait wakes all who wait for one Pod, and nobody else.
func TestManyAwait(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		done := make(chan string, 21)
		start := time.Now()
		for range 20 {
			go func() {
				p.AwaitDeleted(context.Background(), id, true)
				done <- "this"
			}()
		}
		go func() {
			p.AwaitDeleted(context.Background(), "b", true)
			done <- "other"
		}()
		synctest.Wait()
		remove(t, client)
		for range 20 {
			if who := <-done; who != "this" || time.Since(start) != 0 {
				t.Errorf("%s is woken after %v", who, time.Since(start))
			}
		}
		if who := <-done; who != "other" || time.Since(start) != awaitLimit {
			t.Errorf("%s is woken after %v", who, time.Since(start))
		}
	}, aPod(), aPod(named("b")))
}
