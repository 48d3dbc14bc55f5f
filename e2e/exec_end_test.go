//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// tree is a shell command that starts processes which do not want to go, and waits.
// Each has a number of its own in its arguments.
func tree(mark string) string {
	return fmt.Sprintf(`trap '' TERM HUP
setsid sleep 9%[1]s1 & (trap '' TERM; sleep 9%[1]s2) & (trap '' HUP; exec sleep 9%[1]s3) &
env -i sleep 9%[1]s4 & sh -c 'setsid sh -c "sleep 9%[1]s5 & wait" & wait' &
echo ready; sleep 9%[1]s6`, mark)
}

const treeSize = 6

// left counts the processes of a tree.
func (r *runner) left(t testing.TB, id, mark string) int {
	t.Helper()
	x := r.run(t, script(id, "ps -o args | grep -c '^sleep 9"+mark+"'; true"))
	var n int
	if _, err := fmt.Sscan(x.stdout.String(), &n); err != nil {
		t.Fatalf("ps says %q", x.stdout.String())
	}
	return n
}

// wantEnd checks how a command ended, and how long after from.
func wantEnd(t testing.TB, x *execution, from time.Time, reason runnerv1.ExecExitReason, killed bool) {
	t.Helper()
	exit := x.end(t)
	if exit.GetReason() != reason || exit.GetKilled() != killed {
		t.Errorf("it ended with %s, killed %t, code %d; cause %v", exit.GetReason(), exit.GetKilled(), exit.GetExitCode(), x.stream.Trailer().Get("k8s-runner-exit-cause"))
	}
	if took := x.endedAt.Sub(from); took > 2*time.Second {
		t.Errorf("it ended %s later", took)
	}
	if reason == runnerError && exit.GetExitCode() == 0 {
		t.Error("it ended with code 0")
	}
}

// TestExecEnds: whatever ends a command ends it within two seconds, and says what
// it was.
func TestExecEnds(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.sleeping(t)
	r.run(t, script(id, "true"))
	for i := range 4 {
		tty, kill := i&1 != 0, i&2 != 0
		options := func(o *runnerv1.ExecOptions) { o.Tty, o.KillOnTimeout = tty, kill }
		t.Run(fmt.Sprintf("terminal %t, kill %t", tty, kill), func(t *testing.T) { testEnds(t, r, id, strconv.Itoa(i), options, kill) })
	}
}

// endAfter is a limit that leaves time to see what runs until then.
const endAfter = 8 * time.Second

func testEnds(t *testing.T, r *runner, id, group string, options func(*runnerv1.ExecOptions), kill bool) {
	wantLeft := func(t *testing.T, mark string) {
		t.Helper()
		want := treeSize
		if kill {
			want = 0
		}
		if n := r.left(t, id, mark); n != want {
			t.Errorf("%d processes are left", n)
		}
		r.run(t, script(id, "pkill -9 -f '^sleep 9"+mark+"'; true"))
	}
	var began time.Time
	ready := func(t *testing.T, mark string, more ...func(*runnerv1.ExecOptions)) (*execution, string) {
		t.Helper()
		x := r.execute(t, script(id, tree(mark), append(more, options)...))
		execution := x.id(t)
		began = time.Now()
		x.awaitOutput(t, "ready")
		eventually(t, 10*time.Second, "all processes of the tree are there", func() error {
			if n := r.left(t, id, mark); n != treeSize {
				return fmt.Errorf("there are %d", n)
			}
			return nil
		})
		return x, execution
	}
	t.Run("time-out", func(t *testing.T) {
		x, _ := ready(t, group+"01", timeout(endAfter))
		wantEnd(t, x, began.Add(endAfter), timedOut, kill)
		wantLeft(t, group+"01")
	})
	t.Run("idle", func(t *testing.T) {
		x, _ := ready(t, group+"02", idle(endAfter))
		begin := time.Now()
		x.stdin(t, []byte("\n")) // which is activity
		wantEnd(t, x, begin.Add(endAfter), idledOut, kill)
		wantLeft(t, group+"02")
	})
	t.Run("cancel", func(t *testing.T) {
		x, execution := ready(t, group+"03")
		begin := time.Now()
		answer, err := r.CancelExecution(t.Context(), &runnerv1.CancelExecutionRequest{ExecutionId: execution, Force: kill})
		if err != nil || !answer.GetCancelled() {
			t.Errorf("the answer is %v, %v", answer, err)
		}
		wantEnd(t, x, begin, cancelled, kill)
		wantLeft(t, group+"03")
		if answer, err := r.CancelExecution(t.Context(), &runnerv1.CancelExecutionRequest{ExecutionId: execution}); err != nil || answer.GetCancelled() {
			t.Errorf("once more the answer is %v, %v", answer, err)
		}
	})
	t.Run("caller gone", func(t *testing.T) {
		x, _ := ready(t, group+"04")
		x.cancel()
		if kill {
			eventually(t, 20*time.Second, "the processes are gone", func() error {
				if n := r.left(t, id, group+"04"); n > 0 {
					return fmt.Errorf("%d are left", n)
				}
				return nil
			})
		}
	})
}

// TestExecPodEnds: a command ends with its Pod, and is not complete.
func TestExecPodEnds(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	for name, end := range map[string]func(id string) error{
		"stopped": func(id string) error {
			_, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: id, TimeoutSec: 20})
			return err
		},
		"removed": func(id string) error {
			_, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true})
			return err
		},
		"deleted by others": func(id string) error {
			return suite.admin.CoreV1().Pods(r.namespace).Delete(t.Context(), "workload-"+id, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := r.sleeping(t)
			x := r.execute(t, script(id, "echo ready; sleep 1000"))
			x.awaitOutput(t, "ready")
			begin := time.Now()
			if err := end(id); err != nil {
				t.Fatal(err)
			}
			wantEnd(t, x, begin, runnerError, false)
		})
	}
}

// TestExecConnection: commands go over SPDY and terminals over WebSockets, and each over
// the other one where it has to; a connection that breaks before the status is no
// completion.
func TestExecConnection(t *testing.T) {
	ns := newNamespace(t)
	proxy := newUpgrades(t)
	r := startRunner(t, ns.through(t, proxy.server(), proxy.ca()))
	id := r.sleeping(t)
	went := func(options ...func(*runnerv1.ExecOptions)) string {
		t.Helper()
		spdy, webSockets := proxy.spdy.Load(), proxy.webSockets.Load()
		if exit := r.run(t, script(id, "exit 3", options...)).exit; exit.GetExitCode() != 3 {
			t.Errorf("exit %v", exit)
		}
		return fmt.Sprintf("%d SPDY, %d WebSockets", proxy.spdy.Load()-spdy, proxy.webSockets.Load()-webSockets)
	}
	const spdy, webSockets = "1 SPDY, 0 WebSockets", "0 SPDY, 1 WebSockets"
	if command, term := went(), went(terminal); command != spdy || term != webSockets {
		t.Errorf("a command went over %s, a terminal over %s", command, term)
	}
	cut := func(t *testing.T) {
		x := r.execute(t, script(id, "echo ready; sleep 1000"))
		x.awaitOutput(t, "ready")
		begin := time.Now()
		proxy.cut()
		wantEnd(t, x, begin, runnerError, false)
	}
	t.Run("cut", cut)
	t.Run("without WebSockets", func(t *testing.T) {
		proxy.noWebSockets.Store(true)
		defer proxy.noWebSockets.Store(false)
		if term := went(terminal); term != spdy {
			t.Errorf("a terminal went over %s", term)
		}
		testTerminal(t, r, id)
	})
	proxy.noSPDY.Store(true)
	if command := went(); command != webSockets {
		t.Errorf("a command went over %s", command)
	}
	t.Run("without SPDY", func(t *testing.T) {
		t.Run("exit codes", func(t *testing.T) { testExitCodes(t, r, id) })
		t.Run("streams", func(t *testing.T) { testStreams(t, r, id) })
		t.Run("stdin", func(t *testing.T) { testStdin(t, r, id) })
		t.Run("unread input", func(t *testing.T) { testUnread(t, r, id) })
		t.Run("cut", cut)
	})
}

// TestExecShutdown: a runner that ends tells its callers, at once.
func TestExecShutdown(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.sleeping(t)
	x := r.execute(t, script(id, "echo ready; sleep 1000"))
	x.awaitOutput(t, "ready")
	begin := time.Now()
	if err := r.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, x, begin, runnerError, false)
	if trailer := strings.Join(x.stream.Trailer().Get("k8s-runner-exit-cause"), ""); !strings.Contains(trailer, "runner is ending") {
		t.Errorf("the cause is %q", trailer)
	}
}

// TestExecIntoLog: with log_to_pid1 the container's log has the output, too.
func TestExecIntoLog(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.sleeping(t)
	for i, change := range []func(*runnerv1.ExecOptions){separate, terminal, func(*runnerv1.ExecOptions) {}} {
		x := r.run(t, script(id, "echo to-out; echo to-err >&2; seq 2000", change, func(o *runnerv1.ExecOptions) { o.LogToPid1 = true }))
		if !strings.HasSuffix(strings.ReplaceAll(x.stdout.String(), "\r", ""), "\n1999\n2000\n") {
			t.Errorf("%d: the output has %d bytes; %v %s", i, len(x.stdout.String()), x.exit.GetReason(), r.log)
		}
	}
	eventually(t, 20*time.Second, "the log has all of it, once", func() error {
		log := strings.ReplaceAll(r.containerLog(t, id, "main"), "\r", "")
		for _, line := range []string{"to-out\n", "to-err\n", "\n1999\n2000\n"} {
			if n := strings.Count(log, line); n != 3 {
				return fmt.Errorf("it has %q %d times", line, n)
			}
		}
		return nil
	})
}

// TestExecEarly: a command waits for a container that does not run yet, and not for
// one that has ended.
func TestExecEarly(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.InitContainers = []*runnerv1.ContainerSpec{shell("sleep 1")}
	r.start(t, req)
	if x := r.run(t, script(req.GetWorkloadId(), "echo here")); x.stdout.String() != "here\n" {
		t.Errorf("the output is %q", x.stdout.String())
	}
	x := r.execute(t, script(req.GetWorkloadId()+":init-1", "true"))
	if <-x.ended; x.failure.GetCode() != "exec_start_failed" || !strings.Contains(x.failure.GetMessage(), "has ended") {
		t.Errorf("failure %v, exit %v", x.failure, x.exit)
	}
}
