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
// TestRotationWithoutAConnection: nobody has the lines between the last one that
// came and the new file, if there are any. That is told, not hidden.
// TestRotationInLaterSilence is one that a probe sees only much later.
// TestFrozenForLong: if the log may have been rotated once more meanwhile, the
// caller is told.
// TestRotationInSilence loses nothing, and so none is missed when the connection
// breaks later.
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

// TestPartAtTheEnd: an answer that ends in the middle of a line is not the end of
// the line.
func TestPartAtTheEnd(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		part := func(text string, partial bool) {
			n.change(func() {
				n.files[0].lines = append(n.files[0].lines, fileLine{at: time.Now(), data: text, partial: partial})
			})
			time.Sleep(time.Second)
		}
		n.set(func() { n.early = true })
		c := n.follow(t)
		part("one ", true)
		c.want(t, "")
		part("line", false)
		c.want(t, "one line\n")
		part("no end", true)
		c.want(t, "one line\n")
		n.end()
		c.wantEnd(t, "")
		c.want(t, "one line\nno end")
	})
}

// TestFrozen: the kubelet stays with a file that was rotated away.
// TestFrozenAtAnEmptyFile: nothing has been written since the rotation.
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
