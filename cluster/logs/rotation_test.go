package logs

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRotation(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 100)...)
		c := n.follow(t)
		synctest.Wait()
		n.rotate()
		n.write(numbered(101, 150)...)
		synctest.Wait()
		n.cut()
		n.write(numbered(151, 200)...)
		time.Sleep(time.Second)
		c.wantAll(t, 200)
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 200)
	})
}

func TestRotationWithoutAConnection(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 100)...)
		c := n.follow(t)
		synctest.Wait()
		n.set(func() { n.down = true })
		n.cut()
		n.write(numbered(101, 110)...)
		n.rotate()
		n.write(numbered(111, 200)...)
		n.set(func() { n.down = false })
		c.wantEnd(t, "log_lines_lost")
		c.wantAll(t, 100)
	})
}

func TestRotationInLaterSilence(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 100)...)
		c := n.follow(t)
		time.Sleep(10 * time.Second)
		n.rotate()
		time.Sleep(2 * probeEvery)
		n.set(func() {
			if n.gets > 1 {
				t.Errorf("it has begun %d times", n.gets)
			}
		})
		n.cut()
		time.Sleep(2 * probeEvery)
		n.cut()
		time.Sleep(time.Second)
		n.write(numbered(101, 200)...)
		synctest.Wait()
		c.wantAll(t, 200)
		n.end()
		c.wantEnd(t, "")
	})
}

func TestFrozenForLong(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  string
	}{"the next file": {rotateLimit - time.Second, ""}, "a later one": {rotateLimit + time.Second, "log_lines_lost"}} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				n.write(numbered(1, 10)...)
				n.set(func() { n.frozen = true })
				call := n.follow(t, slow) // for longer than it takes to rotate twice
				time.Sleep(2 * rotateLimit)
				n.write("line 11")
				n.set(func() { n.frozen = false })
				n.rotate()
				time.Sleep(c.after)
				n.write("line 12")
				close(call.hold)
				time.Sleep(4 * quietLimit)
				n.end()
				call.wantEnd(t, c.want)
				if c.want == "" {
					call.wantAll(t, 12)
				} else {
					call.wantAll(t, 11)
				}
			})
		})
	}
}

func TestRotationInSilence(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 100)...)
		c := n.follow(t)
		synctest.Wait()
		n.rotate()
		time.Sleep(2 * probeEvery)
		n.cut()
		time.Sleep(time.Second)
		n.write(numbered(101, 200)...)
		synctest.Wait()
		c.wantAll(t, 200)
		n.end()
		c.wantEnd(t, "")
	})
}

func TestFrozen(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 10)...)
		n.set(func() { n.frozen = true })
		c := n.follow(t)
		synctest.Wait()
		n.set(func() { n.frozen = false })
		n.rotate()
		n.write(numbered(11, 20)...)
		time.Sleep(3 * quietLimit)
		c.wantAll(t, 20)
		n.cut()
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 20)
	})
}

func TestFrozenAtAnEmptyFile(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(numbered(1, 10)...)
		n.set(func() { n.frozen = true })
		c := n.follow(t)
		synctest.Wait()
		n.set(func() { n.frozen = false })
		n.rotate()
		time.Sleep(3 * quietLimit)
		n.write(numbered(11, 20)...)
		synctest.Wait()
		c.wantAll(t, 20)
		n.end()
		c.wantEnd(t, "")
	})
}

func TestLostLines(t *testing.T) {
	for name, after := range map[string]func(n *node){"at the end": (*node).end, "before it": func(n *node) { n.write("one more") }} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				n.set(func() { n.skips = true })
				n.write(numbered(1, 10)...)
				c := n.follow(t)
				synctest.Wait()
				time.Sleep(5 * time.Second)
				n.change(func() {
					f := &file{}
					for i := range 10 {
						f.lines = append(f.lines, fileLine{at: time.Now().Add(time.Duration(i) * time.Second), data: fmt.Sprint("of the newest file ", i)})
					}
					n.files = append(n.files, &file{lines: []fileLine{{at: time.Now(), data: "lost"}}}, f)
				})
				time.Sleep(20 * time.Second)
				n.set(func() { n.skips = false })
				after(n)
				c.wantEnd(t, "log_lines_lost")
				if got := c.String(); strings.Count(got, "newest file 1\n") != 1 || strings.Contains(got, "one more") {
					t.Errorf("it has %q", got)
				}
			})
		})
	}
}
