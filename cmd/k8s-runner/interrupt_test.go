package main

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
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

// TestInterruptTwice: the second signal leaves a command that does not end, and so
// does time.
func TestInterruptTwice(t *testing.T) {
	for name, second := range map[string]bool{"twice": true, "once": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, address, id := serveFake(t)
			p := newProcess(address, "exec", id, "deaf").start(t)
			p.stdout.await(t, "ready")
			p.signal(t, syscall.SIGINT)
			eventually(t, fake.hasCancelled)
			begin := time.Now()
			if second {
				p.signal(t, syscall.SIGINT)
			}
			p.wantExit(t, exitInterrupted, "k8s-runner: interrupted; the command may still run\n")
			if took := time.Since(begin); (took < endLimit/2) != second {
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
	p.signal(t, syscall.SIGINT)
	p.wantExit(t, exitInterrupted, "k8s-runner: interrupted before the command began\n")
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
	p.wantExit(t, exitInterrupted, "k8s-runner: interrupted; the command may still run\n")
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
