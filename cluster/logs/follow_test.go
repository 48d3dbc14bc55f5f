package logs

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// TestDeletion is Unavailable, unless the container had ended by itself.
// TestReplacedUnseen: right after an outage the cache may still show the earlier
// Pod, whose log nobody can read any more.
// TestDeletionBeforeTheStart ends the wait, too.
// TestLastWords of a container that is being killed still come.
// TestRestart: a follow ends with the run of the container that it began with,
// of which all comes.
// TestEndsWithItsCaller: with the cause of the end, also while it waits, and with
// the error of send.
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
