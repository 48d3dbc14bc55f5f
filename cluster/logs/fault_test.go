package logs

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOutage of less than a minute is not seen, of a longer one the caller is
// told; what there was to read has come.
func TestOutage(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end func(n *node)
		length     time.Duration
		want       string
	}{
		"refused":                {func(n *node) { n.down = true }, func(n *node) { n.down = false }, 50 * time.Second, ""},
		"refused for long":       {func(n *node) { n.down = true }, func(n *node) { n.down = false }, 70 * time.Second, "kubernetes_unavailable"},
		"fails":                  {func(n *node) { n.fails = 500 }, func(n *node) { n.fails = 0 }, 50 * time.Second, ""},
		"fails for long":         {func(n *node) { n.fails = 500 }, func(n *node) { n.fails = 0 }, 70 * time.Second, "kubernetes_unavailable"},
		"busy":                   {func(n *node) { n.fails = 429 }, func(n *node) { n.fails = 0 }, 50 * time.Second, ""},
		"no credential":          {func(n *node) { n.fails = 401 }, func(n *node) { n.fails = 0 }, 50 * time.Second, ""},
		"no credential at all":   {func(n *node) { n.fails = 401 }, func(n *node) { n.fails = 0 }, 70 * time.Second, "runner_credential_rejected"},
		"not allowed":            {func(n *node) { n.fails = 403 }, func(n *node) { n.fails = 0 }, 20 * time.Second, "runner_not_allowed"},
		"not allowed at first":   {func(n *node) { n.fails = 403 }, func(n *node) { n.fails = 0 }, 10 * time.Second, ""},
		"unreadable":             {func(n *node) { n.says = "unable to retrieve container logs for x" }, func(n *node) { n.says = "" }, 50 * time.Second, ""},
		"unreadable for long":    {func(n *node) { n.says = "unable to retrieve container logs for x" }, func(n *node) { n.says = "" }, 70 * time.Second, "kubernetes_unavailable"},
		"followed by too many":   {func(n *node) { n.says = "failed to create fsnotify watcher: too many open files" }, func(n *node) { n.says = "" }, 5 * time.Minute, ""},
		"closed again and again": {func(n *node) { n.early = true }, func(n *node) { n.early = false }, 5 * time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				n.write(numbered(1, 10)...)
				follow := n.follow(t)
				synctest.Wait()
				n.set(func() { c.begin(n) })
				n.cut()
				n.write(numbered(11, 20)...)
				time.Sleep(c.length)
				n.set(func() { c.end(n) })
				n.end()
				follow.wantEnd(t, c.want)
				if c.want == "" {
					follow.wantAll(t, 20)
				}
			})
		})
	}
}

// TestAKubeletThatDies ends an answer as if the log had ended there.
func TestAKubeletThatDies(t *testing.T) {
	for name, change := range map[string]func(*call){"follow": func(*call) {}, "once": noFollow} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				for _, line := range numbered(1, 20) {
					n.write(line)
				}
				n.end()
				n.set(func() { n.short = 10 })
				c := n.follow(t, change)
				c.wantEnd(t, "")
				c.wantAll(t, 20)
			})
		})
	}
}

// TestFlapping: it is the time without an answer that counts.
func TestFlapping(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		c := n.follow(t)
		synctest.Wait()
		for i := range 10 {
			n.set(func() { n.fails = 503 })
			n.cut()
			time.Sleep(40 * time.Second)
			n.set(func() { n.fails = 0 })
			time.Sleep(5 * time.Second)
			n.write(numbered(i+1, i+1)...)
		}
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 10)
	})
}

// TestManyFollow: where the kubelet cannot follow, it is asked again and again,
// so that lines come a moment later.
func TestManyFollow(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.set(func() { n.says = "failed to create fsnotify watcher: too many open files" })
		c := n.follow(t)
		for i := range 100 {
			n.write(numbered(i+1, i+1)...)
			time.Sleep(3 * time.Second)
			c.wantAll(t, i+1)
		}
		n.set(func() {
			if n.logs > 320 {
				t.Errorf("in five minutes the API server is asked %d times", n.logs)
			}
		})
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 100)
	})
}

// TestSlowCaller: nothing is lost of a caller who does not read for an hour, and
// that is no silence of the log.
func TestSlowCaller(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 10)...)
		c := n.follow(t, slow)
		time.Sleep(time.Hour)
		n.rotate()
		n.write(numbered(11, 20)...)
		c.takes(20)
		c.wantAll(t, 20)
		n.set(func() {
			if n.logs > 1 {
				t.Errorf("the API server is asked %d times", n.logs)
			}
		})
		c.cancel(nil)
		<-c.done
	})
}
