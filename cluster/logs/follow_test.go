package logs

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

func noFollow(c *call) { c.req.Follow = false }

func tail(lines int64) func(*call) {
	return func(c *call) { c.req.Tail = &lines }
}

func since(at time.Time) func(*call) {
	return func(c *call) { c.req.Since = at }
}

// slow has the caller take a piece for each item of hold.
func slow(c *call) { c.hold = make(chan struct{}) }

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func runs() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func ends(at time.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}}
}

// TestFollow sends what is there and what comes, and ends with the container.
func TestFollow(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		begin := time.Now()
		n.write(numbered(1, 3)...)
		c := n.follow(t)
		synctest.Wait()
		c.wantAll(t, 3)
		time.Sleep(time.Hour)
		n.write(numbered(4, 5)...)
		synctest.Wait()
		c.wantAll(t, 5)
		if !c.at[2].Equal(begin) || !c.at[3].Equal(begin.Add(time.Hour+time.Millisecond)) {
			t.Errorf("the times are %v", c.at)
		}
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 5)
	})
}

// TestNoFollow sends what is there; of a container that has not started, nothing.
func TestNoFollow(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 3)...)
		c := n.follow(t, noFollow)
		c.wantEnd(t, "")
		c.wantAll(t, 3)
		n.end()
		c = n.follow(t, noFollow)
		c.wantEnd(t, "")
		c.wantAll(t, 3)
		n.change(func() { n.status(waits("ContainerCreating")) })
		c = n.follow(t, noFollow)
		c.wantEnd(t, "")
		c.want(t, "")
	})
}

func TestTailAndSince(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write("line 1")
		time.Sleep(300 * time.Millisecond)
		middle := time.Now()
		n.write("line 2", "line 3") // in the same second
		for name, c := range map[string]struct {
			change []func(*call)
			want   string
		}{
			"tail":                   {[]func(*call){tail(1)}, "line 3\n"},
			"tail of more":           {[]func(*call){tail(9)}, "line 1\nline 2\nline 3\n"},
			"no tail":                {[]func(*call){tail(0)}, ""},
			"since":                  {[]func(*call){since(middle)}, "line 2\nline 3\n"},
			"since later":            {[]func(*call){since(middle.Add(1))}, ""},
			"since and tail":         {[]func(*call){since(middle), tail(1)}, "line 3\n"},
			"since and tail of more": {[]func(*call){since(middle), tail(9)}, "line 2\nline 3\n"},
			"since long ago":         {[]func(*call){since(time.Unix(1, 0))}, "line 1\nline 2\nline 3\n"},
		} {
			t.Log(name)
			once := n.follow(t, append(c.change, noFollow)...)
			once.wantEnd(t, "")
			once.want(t, c.want)
			follow := n.follow(t, c.change...)
			synctest.Wait()
			n.cut()
			time.Sleep(time.Second)
			follow.want(t, c.want)
			follow.cancel(nil)
			<-follow.done
		}
	})
}

// TestFollowWaits for a container that has not started, without asking again and
// again.
func TestFollowWaits(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.set(func() { n.status(waits("PodInitializing")) })
		c := n.follow(t)
		time.Sleep(time.Hour)
		n.set(func() {
			if n.gets > 2 || n.logs > 0 {
				t.Errorf("in an hour the API server was asked %d and %d times", n.gets, n.logs)
			}
		})
		n.change(func() { n.status(runs()) })
		n.write(numbered(1, 2)...)
		synctest.Wait()
		c.wantAll(t, 2)
		n.end()
		c.wantEnd(t, "")
	})
}

// TestFollowFromTheFirstMoment: the kubelet ends an answer about a container that
// it does not see running yet.
func TestFollowFromTheFirstMoment(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.set(func() { n.early = true })
		c := n.follow(t)
		time.Sleep(100 * time.Millisecond)
		n.set(func() { n.early = false })
		n.write(numbered(1, 2)...)
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 2)
	})
}

// TestNeverStarts: a container that cannot start any more has no log, and that is
// its end.
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

// TestDeletion is Unavailable, unless the container had ended by itself.
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

// TestDeletionBeforeTheStart ends the wait, too.
func TestDeletionBeforeTheStart(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.set(func() { n.status(waits("ContainerCreating")) })
		c := n.follow(t)
		synctest.Wait()
		n.remove()
		c.wantEnd(t, "workload_deleted")
	})
}

// TestLastWords of a container that is being killed still come.
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

// TestRestart: a follow ends with the run of the container that it began with,
// of which all comes.
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

// TestEndsWithItsCaller: with the cause of the end, also while it waits, and with
// the error of send.
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

// TestBytes pass untouched.
func TestBytes(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		long := strings.Repeat("0123456789abcde\xd4", 3*maxPiece/16+1)
		lines := []string{"\xd4\xff\x00", "", "a\rb\r", " x ", strings.Repeat("é", 4096), long, "é\t"}
		n.write(lines...)
		n.change(func() {
			f := n.files[0]
			for _, part := range []string{"of ", "three ", "parts"} {
				f.lines = append(f.lines, fileLine{at: time.Now(), data: part, partial: true})
			}
		})
		c := n.follow(t)
		synctest.Wait()
		n.end()
		c.wantEnd(t, "")
		c.want(t, strings.Join(lines, "\n")+"\nof three parts")
	})
}
