package logs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCut resumes with each line once, also of many with one time, and of many
// that are the same.
func TestCut(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		same := []string{"same", "same", "same"}
		n.write(same...)
		c := n.follow(t)
		synctest.Wait()
		n.cut()
		n.write(same...)
		time.Sleep(time.Second)
		c.want(t, strings.Repeat("same\n", 6))
		n.cut()
		time.Sleep(time.Second)
		c.want(t, strings.Repeat("same\n", 6))
		n.write("same")
		n.end()
		c.wantEnd(t, "")
		c.want(t, strings.Repeat("same\n", 7))
	})
}

// TestAnyCuts: whatever is written, cut and rotated when, of a caller who keeps
// pace no line is lost or comes twice. What is written while nobody is connected
// is in the newest file.
func TestAnyCuts(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) { anyCuts(t, n, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func anyCuts(t *testing.T, n *node, random *rand.Rand) {
	var want strings.Builder
	var clock time.Time
	tick := func() {
		if clock = clock.Add(time.Microsecond); clock.Before(time.Now()) {
			clock = time.Now()
		}
	}
	burst := func(lines int, oneTime bool) {
		tick()
		n.change(func() {
			f := n.files[len(n.files)-1]
			for range lines {
				text, at := fmt.Sprintf("line %d", random.IntN(5)), clock // many are the same
				if random.IntN(500) == 0 {
					text = strings.Repeat(text, random.IntN(4*maxPiece/6))
				}
				if !oneTime && random.IntN(10) == 0 { // as of two writers
					at = at.Add(-time.Duration(random.IntN(50)) * time.Microsecond)
				}
				f.lines = append(f.lines, fileLine{at: at, data: text})
				want.WriteString(text + "\n")
				if !oneTime {
					tick()
				}
			}
		})
	}
	c := n.follow(t)
	for range 60 {
		switch random.IntN(15) {
		case 0:
			n.cut()
		case 1: // right in the middle of what comes
			burst(random.IntN(3*remembered), false)
			n.cut()
		case 2:
			synctest.Wait()
			time.Sleep(3 * time.Second)
			n.rotate()
			burst(1, false)
			synctest.Wait()
		case 3:
			n.set(func() { n.down = true })
			n.cut()
			time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			burst(1, false)
			n.set(func() { n.down = false })
		case 4:
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		case 5:
			burst(random.IntN(3*remembered), true)
		default:
			burst(1, false)
		}
	}
	n.end()
	c.wantEnd(t, "")
	c.want(t, want.String())
}

// TestRotation goes over to the new file, also if the connection breaks then.
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

// TestRotationWithoutAConnection: nobody has the lines between the last one that
// came and the new file, if there are any. That is told, not hidden.
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

// TestRotationInLaterSilence is one that a probe sees only much later.
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

// TestFrozenForLong: if the log may have been rotated once more meanwhile, the
// caller is told.
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

// TestRotationInSilence loses nothing, and so none is missed when the connection
// breaks later.
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

// TestLongLine is resumed in its middle.
func TestLongLine(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		long := strings.Repeat("0123456789", maxPiece/2)
		n.write("line 1", long, "line 2")
		c := n.follow(t, slow)
		c.takes(4) // the first line and three pieces
		n.cut()
		c.takes(20)
		time.Sleep(time.Second)
		c.want(t, "line 1\n"+long+"\nline 2\n")
		c.cancel(nil)
		<-c.done
	})
}

// TestPartsOfALine are those of which the container runtime makes a long line,
// with times of their own. A request since a time between them begins with the
// rest of the line.
func TestPartsOfALine(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		part := func(text string, partial bool) {
			n.change(func() {
				f := n.files[len(n.files)-1]
				f.lines = append(f.lines, fileLine{at: time.Now(), data: text, partial: partial})
			})
			time.Sleep(800 * time.Millisecond)
		}
		c := n.follow(t)
		part("one ", true)
		part("line", false)
		part("another ", true)
		part("that is ", true)
		c.want(t, "one line\n")
		n.cut() // in the middle of it
		part("long, ", true)
		part("really ", true)
		part("long", false)
		c.want(t, "one line\nanother that is long, really long\n")
		n.cut()
		part("last", false)
		c.want(t, "one line\nanother that is long, really long\nlast\n")
		n.end()
		c.wantEnd(t, "")
		c.want(t, "one line\nanother that is long, really long\nlast\n")
	})
}

// TestFrozen: the kubelet stays with a file that was rotated away.
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

// TestFrozenAtAnEmptyFile: nothing has been written since the rotation.
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

// TestSilence costs the API server a look a minute.
func TestSilence(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write("line 1", strings.Repeat("x", 100))
		c := n.follow(t)
		time.Sleep(time.Hour)
		n.set(func() {
			if n.logs > 62 || n.gets > 1 {
				t.Errorf("in an hour of silence the API server was asked %d and %d times", n.logs, n.gets)
			}
		})
		n.write("end")
		synctest.Wait()
		c.want(t, "line 1\n"+strings.Repeat("x", 100)+"\nend\n")
		n.end()
		c.wantEnd(t, "")
	})
}

// TestMute: a connection over which nothing comes any more, not even the end.
func TestMute(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write("line 1")
		c := n.follow(t)
		synctest.Wait()
		n.set(func() { n.mute = true })
		n.write("line 2")
		synctest.Wait()
		n.set(func() { n.mute = false })
		begin := time.Now()
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 2)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}

// TestLostLines: a caller so slow that the log is rotated twice meanwhile is
// told, and gets no line twice.
func TestLostLines(t *testing.T) {
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
		time.Sleep(time.Second)
		n.set(func() { n.skips = false })
		n.end()
		c.wantEnd(t, "log_lines_lost")
		if got := c.String(); strings.Count(got, "newest file 1\n") != 1 {
			t.Errorf("it has %q", got)
		}
	})
}

// TestClockIsSetBack loses nothing and repeats nothing.
func TestClockIsSetBack(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		at := func(d time.Duration, text string) {
			n.change(func() {
				f := n.files[0]
				f.lines = append(f.lines, fileLine{at: time.Now().Add(d), data: text})
			})
			synctest.Wait()
		}
		c := n.follow(t)
		at(0, "line 1")
		at(-time.Hour, "line 2")
		at(-time.Hour, "line 3")
		at(0, "line 4")
		n.cut()
		at(time.Second, "line 5")
		n.end()
		c.wantEnd(t, "")
		c.wantAll(t, 5)
	})
}
