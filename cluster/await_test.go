package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/agynio/k8s-runner/workload"
)

const podName = "workload-" + id

func succeeds() error { return nil }

// awaits tells how long Deleting waits, once del has returned, while the cluster
// changes.
func awaits(t *testing.T, p *Pods, goingIsEnough bool, del func() error, change func()) time.Duration {
	t.Helper()
	start := time.Now()
	done := make(chan time.Duration, 1)
	go func() {
		var want error
		err := p.Deleting(context.Background(), podName, goingIsEnough, func() error {
			want = del()
			return want
		})
		if !errors.Is(err, want) {
			t.Errorf("it returns %v, not %v", err, want)
		}
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

func TestDeleting(t *testing.T) {
	nothing := func(*testing.T, *fake.Clientset) {}
	goes := func(t *testing.T, client *fake.Clientset) { update(t, client, aPod(version("2"), going)) }
	notFound := func() error { return workload.NoSuchWorkload(id) }
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		there         bool
		goingIsEnough bool
		del           func() error
		change        func(t *testing.T, client *fake.Clientset)
		want          time.Duration
	}{
		"deleted":                  {true, false, succeeds, remove, 0},
		"deleted, going is enough": {true, true, succeeds, remove, 0},
		"going":                    {true, true, succeeds, goes, 0},
		"going is not enough": {true, false, succeeds, func(t *testing.T, client *fake.Clientset) {
			update(t, client, aPod(version("2"), going, func(p *corev1.Pod) { p.Finalizers = nil }))
		}, awaitLimit},
		"another change":          {true, true, succeeds, func(t *testing.T, client *fake.Clientset) { update(t, client, aPod(version("2"))) }, awaitLimit},
		"nothing":                 {true, true, succeeds, nothing, awaitLimit},
		"another Pod":             {true, true, succeeds, func(t *testing.T, client *fake.Clientset) { create(t, client, aPod(named("b"))) }, awaitLimit},
		"absent":                  {false, true, notFound, nothing, 0},
		"absent, and shown still": {true, true, notFound, remove, 0},
		"absent, but shown":       {true, true, notFound, nothing, 0},
		"refused":                 {true, true, func() error { return refused }, nothing, 0},
		// Another replica made it: its events are still to come.
		"not shown yet": {false, true, succeeds, func(t *testing.T, client *fake.Clientset) {
			time.Sleep(time.Second) // of the test's own time
			create(t, client, aPod(version("2")))
			time.Sleep(time.Second / 2)
			goes(t, client)
		}, time.Second * 3 / 2},
		"not shown yet, going is not enough": {false, false, succeeds, func(t *testing.T, client *fake.Clientset) {
			create(t, client, aPod(version("2")))
			goes(t, client)
			time.Sleep(time.Second)
			remove(t, client)
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			test := func(t *testing.T, p *Pods, client *fake.Clientset) {
				if took := awaits(t, p, c.goingIsEnough, c.del, func() { c.change(t, client) }); took != c.want {
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

// TestDeletingWhatFinalizersKeep says which they are (C42).
func TestDeletingWhatFinalizersKeep(t *testing.T) {
	stays := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		goingIsEnough bool
		before, after func(*corev1.Pod)
		del           error
		want          string
	}{
		"gone is wanted":      {false, stays, going, nil, "workload_terminating"},
		"it was going before": {false, going, going, nil, "workload_terminating"},
		"going is enough":     {true, stays, going, nil, ""},
		"it was not there":    {false, going, going, workload.NoSuchWorkload(id), "workload_not_found"},
		"the watch is behind": {false, stays, stays, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
				err := p.Deleting(context.Background(), podName, c.goingIsEnough, func() error {
					update(t, client, aPod(version("2"), c.after, func(p *corev1.Pod) { p.Finalizers = []string{"a/b", "c/d"} }))
					return c.del
				})
				var e *workload.Error
				if errors.As(err, &e) != (c.want != "") || e != nil && e.Token != c.want {
					t.Fatalf("it returns %v", err)
				}
				if c.want == "workload_terminating" && (e.Kind != workload.FailedPrecondition || e.RetryAfter <= 0 || !strings.Contains(e.Message, podName+" is") || !strings.Contains(e.Message, "a/b, c/d")) {
					t.Errorf("it is %+v", e)
				}
			}, aPod(c.before))
		})
	}
}

// TestDeletingWhatIsGoing already returns at once.
func TestDeletingWhatIsGoing(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		if took := awaits(t, p, true, succeeds, func() {}); took != 0 {
			t.Errorf("it waits %v", took)
		}
	}, aPod(going))
}

// TestDeletingMissesNothing: events that come while the deletion is on its way
// count.
func TestDeletingMissesNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		start := time.Now()
		err := p.Deleting(context.Background(), podName, false, func() error {
			create(t, client, aPod())
			remove(t, client)
			return nil
		})
		if took := time.Since(start); took != 0 || err != nil {
			t.Errorf("it waits %v, and returns %v", took, err)
		}
	})
}

// TestDeletingAWrittenPod: a Pod that was written and that the watch has not
// brought yet is shown, so it is not gone.
func TestDeletingAWrittenPod(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"))))
		took := awaits(t, p, true, succeeds, func() {
			time.Sleep(time.Second) // of the test's own time
			create(t, client, aPod(version("5")))
			update(t, client, aPod(version("6"), going))
		})
		if s, ok := p.Get(id); took != time.Second || !ok || !s.Terminating {
			t.Errorf("it waits %v, and Get returns %v, %v", took, s, ok)
		}
	})
}

// TestDeletingAWrittenPodOverAnother: what the cache has is of an earlier Pod,
// or nothing, and says nothing of the one that was written.
func TestDeletingAWrittenPodOverAnother(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"))))
		took := awaits(t, p, true, succeeds, func() {
			time.Sleep(time.Second) // of the test's own time
			update(t, client, aPod(version("6"), going))
		})
		if took != time.Second {
			t.Errorf("it waits %v", took)
		}
	}, aPod(version("2"), going))
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"))))
		gone := func() error { return workload.NoSuchWorkload(id) }
		if took := awaits(t, p, true, gone, func() {}); took != 0 {
			t.Errorf("it waits %v", took)
		}
		if s, ok := p.Get(id); ok {
			t.Errorf("Get returns %v", s)
		}
	})
}

// TestDeletingMeetsTheEndOfAnEarlierPod: what the watch tells of a Pod that had the
// name before is not taken for the end of this one.
func TestDeletingMeetsTheEndOfAnEarlierPod(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"), func(p *corev1.Pod) { p.UID = "later" })))
		client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), podName)
		})
		if took := awaits(t, p, false, succeeds, func() { remove(t, client) }); took != awaitLimit {
			t.Errorf("it waits %v", took)
		}
		if s, ok := p.Get(id); ok {
			t.Errorf("Get returns %v", s)
		}
	}, aPod(version("2")))
}

// TestDeletedWhileTheWatchIsBroken: what the API server says is gone is not shown,
// also if the watch does not tell; another Pod of the name is.
func TestDeletedWhileTheWatchIsBroken(t *testing.T) {
	for name, del := range map[string]func() error{"deleted": succeeds, "absent": func() error { return workload.NoSuchWorkload(id) }} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
				client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), podName)
				})
				awaits(t, p, false, del, func() {})
				shown := func() (there bool) {
					_ = p.Follow(t.Context(), id, func(s *workload.State) bool { there = s != nil; return true })
					s, ok := p.Get(id)
					if all := p.List(nil); ok != there || ok != (len(all) == 1) {
						t.Errorf("Follow shows %v, Get %v, List %v", there, s, all)
					}
					return there
				}
				if shown() {
					t.Error("it is shown still")
				}
				update(t, client, aPod(version("2"))) // a watch that replays what was
				synctest.Wait()
				if shown() {
					t.Error("it is shown again")
				}
				p.Wrote(asWritten(t, aPod(version("9")))) // an answer that was on its way
				if shown() {
					t.Error("it is shown as it was")
				}
				update(t, client, aPod(version("3"), func(p *corev1.Pod) { p.UID = "another" }))
				synctest.Wait()
				if !shown() {
					t.Error("another Pod is not shown")
				}
			}, aPod())
		})
	}
}

func TestDeletingEndsWithTheCall(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		err := p.Deleting(ctx, podName, true, succeeds)
		if took := time.Since(start); took != time.Second || err != nil {
			t.Errorf("it waits %v, and returns %v", took, err)
		}
	}, aPod())
}

// TestManyDelete wakes all who wait for one Pod, and nobody else.
func TestManyDelete(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		done := make(chan string, 21)
		start := time.Now()
		for range 20 {
			go func() {
				_ = p.Deleting(context.Background(), podName, true, succeeds)
				done <- "this"
			}()
		}
		go func() {
			_ = p.Deleting(context.Background(), "workload-b", true, succeeds)
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
