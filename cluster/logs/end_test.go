package logs

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

func TestNeverStarts(t *testing.T) {
	for name, change := range map[string]func(n *node){
		"evicted": func(n *node) {
			n.pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
		},
		"an init container failed": func(n *node) { n.pod.Status.Phase = corev1.PodFailed },
		"the others are over":      func(n *node) { n.pod.Status.Phase = corev1.PodSucceeded },
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				n.set(func() { n.status(waits("PodInitializing")) })
				c := n.follow(t)
				synctest.Wait()
				n.change(func() { change(n) })
				c.wantEnd(t, "")
				c.want(t, "")
			})
		})
	}
}

func TestDeletion(t *testing.T) {
	going := func(n *node, at time.Time) {
		due, grace := metav1.NewTime(at.Add(30*time.Second)), int64(30)
		n.pod.DeletionTimestamp, n.pod.DeletionGracePeriodSeconds = &due, &grace
	}
	for name, c := range map[string]struct {
		change func(n *node)
		want   string
	}{
		"by force":          {func(n *node) { n.pod = nil }, "workload_deleted"},
		"gracefully":        {func(n *node) { going(n, time.Now()); n.status(ends(time.Now().Add(time.Second))) }, "workload_deleted"},
		"evicted and going": {func(n *node) { going(n, time.Now()); n.pod.Status = corev1.PodStatus{Phase: corev1.PodFailed} }, "workload_deleted"},
		"evicted":           {func(n *node) { n.pod.Status = corev1.PodStatus{Phase: corev1.PodFailed} }, ""},
		"after its end":     {func(n *node) { n.status(ends(time.Now())); going(n, time.Now().Add(2*time.Second)) }, ""},
		"replaced":          {func(n *node) { n.pod.UID = "another"; n.files = []*file{{}} }, "workload_deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				n.write(numbered(1, 2)...)
				follow := n.follow(t)
				synctest.Wait()
				begin := time.Now()
				n.change(func() { c.change(n) })
				follow.wantEnd(t, c.want)
				follow.wantAll(t, 2)
				if took := time.Since(begin); took > 3*time.Second {
					t.Errorf("it takes %v", took)
				}
			})
		})
	}
}

func TestReplacedUnseen(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 2)...)
		c := n.follow(t)
		synctest.Wait()
		n.set(func() {
			n.pod = n.pod.DeepCopy()
			n.pod.UID = "another"
			n.files = []*file{{lines: []fileLine{{at: time.Now().Add(time.Second), data: "of another"}}}}
		})
		n.cut()
		c.wantEnd(t, "workload_deleted")
		c.wantAll(t, 2)
	})
}

func TestDeletionBeforeTheStart(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.set(func() { n.status(waits("ContainerCreating")) })
		c := n.follow(t)
		synctest.Wait()
		n.remove()
		c.wantEnd(t, "workload_deleted")
	})
}

func TestLastWords(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write("line 1")
		c := n.follow(t)
		synctest.Wait()
		n.remove()
		time.Sleep(time.Second)
		n.write("line 2")
		c.wantEnd(t, "workload_deleted")
		c.wantAll(t, 2)
	})
}

func TestRestart(t *testing.T) {
	restarted := func(n *node, times int32, state corev1.ContainerState) {
		n.previous, n.files = n.files[0], []*file{{lines: []fileLine{{at: time.Now(), data: "of another run"}}}}
		n.status(state)
		status := &n.pod.Status.ContainerStatuses[0]
		status.RestartCount = times
		status.LastTerminationState = ends(time.Now())
	}
	for name, c := range map[string]struct {
		times int32
		state corev1.ContainerState
		want  string
	}{
		"once":            {1, runs(), ""},
		"in a moment":     {0, waits("CrashLoopBackOff"), ""},
		"and ended again": {1, ends(time.Now()), ""},
		"twice":           {2, runs(), "log_lines_lost"},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				n.write("line 1")
				follow := n.follow(t)
				synctest.Wait()
				n.set(func() { n.down = true })
				n.cut()
				n.write("line 2")
				n.change(func() {
					n.down = false
					restarted(n, c.times, c.state)
				})
				follow.wantEnd(t, c.want)
				if c.want == "" {
					follow.wantAll(t, 2)
				}
			})
		})
	}
}

func TestEndsWithItsCaller(t *testing.T) {
	why := errors.New("enough")
	onNode(t, func(t *testing.T, n *node) {
		c := n.follow(t)
		synctest.Wait()
		c.cancel(why)
		if err := <-c.done; !errors.Is(err, why) {
			t.Errorf("it ends with %v", err)
		}
		n.set(func() { n.status(waits("ContainerCreating")) })
		c = n.follow(t)
		synctest.Wait()
		c.cancel(why)
		if err := <-c.done; !errors.Is(err, why) {
			t.Errorf("while it waits it ends with %v", err)
		}
		n.change(func() { n.status(runs()) })
		n.write("line 1")
		err := n.client(t).Stream(t.Context(), &workload.LogRequest{Target: workload.Target{ID: id, UID: "uid", Container: "main"}},
			func(workload.LogPiece) error { return why })
		if !errors.Is(err, why) {
			t.Errorf("with the caller's error it ends with %v", err)
		}
	})
}
