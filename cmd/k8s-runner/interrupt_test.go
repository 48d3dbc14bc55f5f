package main

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestInterrupt: the first signal kills the command and waits for its end.
func TestInterrupt(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			_, address, id := serveFake(t)
			p := newProcess(address, "exec", id, "wait").start(t)
			p.stdout.await(t, "ready")
			p.signal(t, signal)
			p.wantExit(t, exitInterrupted, "k8s-runner: the command was cancelled; its processes were killed\n")
		})
	}
}

// TestInterruptDoubled: a signal to a process and to its group is one.
func TestInterruptDoubled(t *testing.T) {
	for name, c := range map[string]struct {
		after []time.Duration
		left  bool
	}{
		"one":               {nil, false},
		"one, doubled":      {[]time.Duration{time.Millisecond}, false},
		"one, repeated":     {[]time.Duration{sameInterrupt / 2, sameInterrupt / 2}, false},
		"two":               {[]time.Duration{sameInterrupt + 1}, true},
		"one, doubled, two": {[]time.Duration{1, sameInterrupt}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(context.Background())
				defer end()
				interrupts := make(chan os.Signal, 2)
				var cancelled, left int
				x := &execution{interrupts: interrupts, cancel: func() { cancelled++ }}
				go x.obeyInterrupts(ctx, func() { left++ })
				interrupts <- os.Interrupt
				synctest.Wait()
				for _, after := range c.after {
					if left > 0 {
						t.Error("it is left too early")
					}
					time.Sleep(after)
					interrupts <- os.Interrupt
					synctest.Wait()
				}
				if cancelled != 1 || (left > 0) != c.left {
					t.Errorf("it is cancelled %d times and left %d times", cancelled, left)
				}
			})
		})
	}
}

// TestInterruptTwice: the second signal leaves a command that does not end, and so
// does time.
func TestInterruptTwice(t *testing.T) {
	for name, second := range map[string]bool{"twice": true, "once": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, address, id := serveFake(t)
			p := newProcess(address, "exec", id, "deaf").start(t)
			p.stdout.await(t, "ready")
			begin := time.Now()
			p.signal(t, syscall.SIGINT)
			eventually(t, fake.hasCancelled)
			for second && !p.hasExited() {
				_ = p.Process.Signal(syscall.SIGINT)
				time.Sleep(10 * time.Millisecond)
			}
			p.wantExit(t, exitInterrupted, "k8s-runner: interrupted; the command may still run\n")
			if took := time.Since(begin); (took < endLimit) != second {
				t.Errorf("it ended after %s", took)
			}
		})
	}
}

// TestInterruptEarly: what has not begun is left at once.
func TestInterruptEarly(t *testing.T) {
	fake, address, id := serveFake(t)
	p := newProcess(address, "exec", id, "hang").start(t)
	eventually(t, fake.hasExecuted)
	begin := time.Now()
	p.signal(t, syscall.SIGINT)
	p.wantExit(t, exitInterrupted, "k8s-runner: interrupted before the command began\n")
	if took := time.Since(begin); took > endLimit {
		t.Errorf("it ended after %s", took)
	}
}

// TestInterruptUnconnected: nor is a runner waited for that does not answer.
func TestInterruptUnconnected(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := newProcess(listener.Addr().String(), "exec", otherID, "wait").start(t)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.signal(t, syscall.SIGINT)
	p.wantExit(t, exitInterrupted, "k8s-runner: interrupted before the command began\n")
}

// TestInterruptUnread: output that nobody reads keeps nothing from ending.
func TestInterruptUnread(t *testing.T) {
	t.Parallel()
	_, address, id := serveFake(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	p := newProcess(address, "exec", id, "flood")
	p.Stdout = write
	p.start(t)
	write.Close()
	if _, err := read.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGINT)
	// Where the pipe is not full yet when the signal comes, the end is still heard.
	p.wantExitLike(t, exitInterrupted, "^k8s-runner: (interrupted; the command may still run|the command was cancelled; its processes were killed)\n$")
}

const otherID = "bbbb0000-0000-4000-8000-000000000002"

// hasExecuted is an error until a command runs.
func (f *fakeRunner) hasExecuted() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.execs) == 0 {
		return errors.New("no command runs")
	}
	return nil
}

// hasCancelled is an error until a command is cancelled.
func (f *fakeRunner) hasCancelled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.execs {
		if len(x.cancelled) > 0 {
			return nil
		}
	}
	return errors.New("no command is cancelled")
}
