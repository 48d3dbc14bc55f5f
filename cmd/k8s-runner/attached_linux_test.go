package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

func TestHold(t *testing.T) {
	for name, c := range map[string]struct {
		main *runnerv1.ContainerSpec
		want []string
	}{
		"nothing":                   {&runnerv1.ContainerSpec{}, []string{"sh"}},
		"a command":                 {&runnerv1.ContainerSpec{Cmd: []string{"ls", "-l"}}, []string{"ls", "-l"}},
		"an entrypoint":             {&runnerv1.ContainerSpec{Entrypoint: "/bin/ls"}, []string{"/bin/ls"}},
		"an entrypoint with a word": {&runnerv1.ContainerSpec{Entrypoint: "/bin/ls", Cmd: []string{"-l"}}, []string{"/bin/ls", "-l"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, hold(c.main)); diff != "" {
				t.Errorf("the command (-want +got)\n%s", diff)
			}
			holds := append([]string{c.main.GetEntrypoint()}, c.main.GetCmd()...)
			if diff := cmp.Diff([]string{"/bin/sh", "-c", holdScript}, holds); diff != "" {
				t.Errorf("what holds the container (-want +got)\n%s", diff)
			}
		})
	}
}

// TestHoldScript: it waits, and ends well when it is asked to.
func TestHoldScript(t *testing.T) {
	p := &process{Cmd: exec.Command("/bin/sh", "-c", holdScript), exited: make(chan struct{})}
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.start(t)
	defer syscall.Kill(-p.Process.Pid, syscall.SIGKILL) // what sleeps; in a container it goes with process 1
	eventually(t, func() error {
		found, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", p.Process.Pid))
		if err == nil && strings.TrimSpace(string(found)) == "" {
			return fmt.Errorf("it does not wait")
		}
		return err
	})
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0, "")
}

// TestAttachedProgress: who waits at a terminal sees for what.
func TestAttachedProgress(t *testing.T) {
	for flags, want := range map[string]string{
		"-t":  "STARTING  main: ContainerCreating\r\nSTARTING  main: ImagePullBackOff (Back-off pulling image \"slow\")\r\nRUNNING\r\nhi\r\n",
		"-tq": "hi\r\n",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			_, address, _ := serveFake(t)
			terminal := newPseudoTerminal(t, 80, 24)
			p := newProcess(address, "run", "--rm", flags, "slow", "say", "hi")
			p.Stderr = terminal.program
			terminal.start(t, p).wantExit(t, 0, "")
			terminal.screen.await(t, "hi\r\n")
			if diff := cmp.Diff(want, terminal.screen.String()); diff != "" {
				t.Errorf("the screen differs (-want +got)\n%s", diff)
			}
		})
	}
}

// TestInterruptRemoves: --rm holds also for a workload that still starts.
func TestInterruptRemoves(t *testing.T) {
	for image, c := range map[string]struct {
		until  func(*fakeRunner, string) error
		stderr string
	}{
		"busybox": {
			func(f *fakeRunner, _ string) error { return f.hasExecuted() },
			// The runner began it. We may have heard of that before the signal, after it, or
			// while the call was being left because of it.
			"^k8s-runner: (the command was cancelled; its processes were killed|interrupted(; the command may still run| before the command began))\n$",
		},
		"missing": {
			(*fakeRunner).hasInspected,
			"^k8s-runner: workload " + otherID + " does not run yet, its status is (ContainerCreating|ImagePullBackOff): context canceled\n$",
		},
	} {
		for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
			t.Run(image+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				fake, address, _ := serveFake(t)
				p := newProcess(address, "run", "--rm", "--id", otherID, image, "wait").start(t)
				eventually(t, func() error { return c.until(fake, otherID) })
				p.signal(t, signal)
				p.wantExitLike(t, exitInterrupted, c.stderr)
				if fake.has(otherID) {
					t.Error("the workload is still there")
				}
			})
		}
	}
}

// TestBrokenPipe: if nobody reads the output any more, the command is killed, and
// --rm holds.
func TestBrokenPipe(t *testing.T) {
	fake, address, _ := serveFake(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(address, "run", "--rm", "--id", otherID, "busybox", "flood")
	p.Stdout = write
	p.start(t)
	write.Close()
	if _, err := read.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	read.Close()
	p.wantExit(t, exitBrokenPipe, "")
	if x := fake.onlyExec(t); !x.exit.GetKilled() || fake.has(otherID) {
		t.Errorf("the workload is still there, or the command: %v", x.exit)
	}
}

// hasInspected is an error until somebody waits for workload id.
func (f *fakeRunner) hasInspected(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.workloads[id]; w == nil || w.inspects < 3 {
		return errors.New("nobody waits for the workload")
	}
	return nil
}
