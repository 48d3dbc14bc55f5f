package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// serveFake serves a fake that has a workload, and returns it with its address and
// the id.
func serveFake(t *testing.T) (fake *fakeRunner, address, id string) {
	t.Helper()
	fake, address, stop, err := newFakeRunner(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	id = "aaaa0000-0000-4000-8000-000000000001"
	_, err = fake.StartWorkload(t.Context(), &runnerv1.StartWorkloadRequest{WorkloadId: id, Main: &runnerv1.ContainerSpec{Image: "busybox"}})
	if err != nil {
		t.Fatal(err)
	}
	return fake, address, id
}

// onlyExec returns the one command that was started.
func (f *fakeRunner) onlyExec(t *testing.T) fakeExec {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.execs) != 1 {
		t.Fatalf("there were %d commands", len(f.execs))
	}
	for _, x := range f.execs {
		return *x
	}
	return fakeExec{}
}

// process is a k8s-runner that runs.
type process struct {
	*exec.Cmd
	stdout, stderr lockedBuffer
	// exited is closed when it has ended.
	exited chan struct{}
}

// newProcess is one that is to be started.
func newProcess(address string, args ...string) *process {
	p := &process{Cmd: exec.Command("k8s-runner", args...), exited: make(chan struct{})}
	p.Env = append(os.Environ(), addressVariable+"="+address)
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p
}

func (p *process) start(t *testing.T) *process {
	t.Helper()
	// A process inherits what is ignored, as under nohup, but not what is handled.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.Wait() // the test looks at its code
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.exited
	})
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// wantExit waits for the end.
func (p *process) wantExit(t *testing.T, code int, stderr string) {
	t.Helper()
	p.wantExitLike(t, code, "^"+regexp.QuoteMeta(stderr)+"$")
}

// wantExitLike wants a regular expression of stderr.
func (p *process) wantExitLike(t *testing.T, code int, stderr string) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not end; stderr has %q", p.stderr.String())
	}
	if got := p.ProcessState.ExitCode(); got != code || !regexp.MustCompile(stderr).MatchString(p.stderr.String()) {
		t.Errorf("it ended with %d and says %q; want %d and %q", got, p.stderr.String(), code, stderr)
	}
}

// eventually waits until check returns nil.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatal(err)
		}
	}
}

// lockedBuffer is one that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// await waits until it has text.
func (b *lockedBuffer) await(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() error {
		if got := b.String(); !strings.Contains(got, text) {
			return fmt.Errorf("there is no %q in %q", text, got)
		}
		return nil
	})
}
