//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const (
	// apiAway is how long the API server does not run; before that it ends, for up
	// to five seconds.
	apiAway = 5 * time.Second
	// serviceLimit is how soon after it is ready a start succeeds: five seconds, and as
	// many for a busy machine.
	serviceLimit = 10 * time.Second
	// logLimit is how soon after it a log goes on: a request that an API server took
	// which then ended may have to be given up first, after half a minute.
	logLimit = time.Minute
	// apiCallLimit is the deadline of a caller's write.
	apiCallLimit = 2 * time.Second
)

// devclusterCommand is a command of the devcluster that the tests run on; the
// test skips where there is none, or one that cannot restart its API server.
func devclusterCommand(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	dir := filepath.Dir(os.Getenv("KUBECONFIG"))
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "devcluster"), args...)
		cmd.Env = append(os.Environ(), "DEVCLUSTER_DIR="+dir)
		return cmd
	}
	if out, err := command("restart-api", "--check").CombinedOutput(); err != nil {
		t.Skipf("only a devcluster restarts its API server: %v\n%s", err, out)
	}
	return command
}

// TestAPIServerRestart ends the API server under load, and starts it again. Reads
// go on and show nothing wrong; writes succeed or say that they can be tried
// again, and then succeed; a start does so soon after the API server is ready; a
// log has each line once; nothing is half done or left. It has the cluster for
// itself: no test that shares it may run beside it.
func TestAPIServerRestart(t *testing.T) {
	devcluster := devclusterCommand(t)
	ns := newNamespace(t)
	r := startRunner(t, ns)
	load := newLoad(t, r)
	restart := devcluster("restart-api", "--down", apiAway.String())
	if out, err := restart.CombinedOutput(); err != nil {
		t.Fatalf("restarting the API server: %v\n%s", err, out)
	}
	back := time.Now()
	eventually(t, serviceLimit, "a start succeeds", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), apiCallLimit)
		defer cancel()
		_, err := r.StartWorkload(ctx, sleeper())
		return err
	})
	t.Logf("a start succeeded %s after the API server was ready", time.Since(back).Round(time.Millisecond))
	load.end(t)
	eventually(t, serviceLimit, "it is ready", func() error {
		if code, why := r.get(t, "/readyz"); code != 200 {
			return errors.New(why)
		}
		return nil
	})
	wantNoGates(t, ns.name)
	deletePods(t, ns.name)
	wantNothingOwned(t, ns.name)
}

// load is what callers do with a runner at the same time.
type load struct {
	r      *runner
	steady []string
	log    *logCall
	exec   *execution
	finish context.CancelFunc
	all    sync.WaitGroup

	mu sync.Mutex
	// wrong are answers that no caller may get.
	wrong         []error
	reads, writes int
	refused       map[string]int
}

// newLoad begins it. The node takes no more Pods once those that are to run do.
func newLoad(t *testing.T, r *runner) *load {
	t.Helper()
	ctx, finish := context.WithCancel(t.Context())
	l := &load{r: r, finish: finish, refused: map[string]int{}}
	talker := sleeper()
	talker.Main = shell(`i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i .; sleep 0.1; done; exec sleep 1000`)
	talker.Labels = map[string]string{"workload_key": "steady"}
	l.steady = append(l.steady, talker.GetWorkloadId())
	r.start(t, talker)
	for range 3 {
		req := sleeper()
		req.Labels = map[string]string{"workload_key": "steady"}
		r.start(t, req)
		l.steady = append(l.steady, req.GetWorkloadId())
	}
	for _, id := range l.steady {
		r.await(t, id, "it runs", running)
	}
	cordon(t, r.namespace)
	l.log = r.follow(t, talker.GetWorkloadId())
	l.exec = r.execute(t, script(talker.GetWorkloadId(), "while :; do echo x; sleep 0.2; done"))
	l.exec.id(t)
	l.all.Go(func() { l.read(ctx) })
	for range 4 {
		l.all.Go(func() { l.write(ctx) })
	}
	t.Cleanup(func() {
		finish()
		l.all.Wait()
	})
	return l
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Errorf(format, args...))
}

// read reads until ctx ends. The steady workloads run, whatever the API server does.
func (l *load) read(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		for _, id := range l.steady {
			w, err := l.r.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{WorkloadId: id})
			if ctx.Err() == nil && (err != nil || !running(w)) {
				l.fault("Inspect of one that runs: %v, %v", w, err)
			}
		}
		list, err := l.r.FindWorkloadsByLabels(ctx, &runnerv1.FindWorkloadsByLabelsRequest{Labels: map[string]string{"workload_key": "steady"}})
		if ctx.Err() == nil && (err != nil || len(list.GetTargetIds()) != len(l.steady)) {
			l.fault("of %d workloads Find has %v, %v", len(l.steady), list.GetTargetIds(), err)
		}
		l.mu.Lock()
		l.reads += len(l.steady) + 1
		l.mu.Unlock()
	}
}

// write starts workloads and stops them, each write again until it is done. It
// ends when ctx has and what it began is gone.
func (l *load) write(ctx context.Context) {
	for ctx.Err() == nil {
		id := newID()
		l.until("start", func(ctx context.Context) error {
			_, err := l.r.StartWorkload(ctx, full(id, "x"))
			return err
		})
		if _, err := l.r.InspectWorkload(context.Background(), &runnerv1.InspectWorkloadRequest{WorkloadId: id}); err != nil {
			l.fault("Inspect of one that was started: %w", err)
		}
		l.until("remove", func(ctx context.Context) error {
			_, err := l.r.RemoveWorkload(ctx, &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true, RemoveVolumes: true})
			if status.Code(err) == codes.NotFound {
				return nil
			}
			return err
		})
		if _, err := l.r.InspectWorkload(context.Background(), &runnerv1.InspectWorkloadRequest{WorkloadId: id}); status.Code(err) != codes.NotFound {
			l.fault("Inspect of one that was removed: %v", err)
		}
	}
}

// until does a write until it is done, or a minute has passed.
func (l *load) until(what string, write func(context.Context) error) {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), apiCallLimit)
		err := write(ctx)
		cancel()
		l.mu.Lock()
		l.writes++
		l.mu.Unlock()
		if err == nil {
			return
		}
		if said := mayTryAgain(err); said != "" {
			l.mu.Lock()
			l.refused[what+" "+said]++
			l.mu.Unlock()
		} else {
			l.fault("%s: %w", what, err)
		}
		if time.Since(begin) > time.Minute {
			l.fault("%s: not done after a minute: %w", what, err)
			return
		}
	}
}

// mayTryAgain is the token of an error after which a caller tries again, or
// nothing. The deadline is the caller's own, so the words of it are gRPC's.
func mayTryAgain(err error) string {
	s := status.Convert(err)
	if s.Code() == codes.DeadlineExceeded {
		return "deadline_exceeded"
	}
	reason := detail[*errdetails.ErrorInfo](s).GetReason()
	if s.Code() == codes.Unavailable && slices.Contains([]string{"KUBERNETES_UNAVAILABLE", "CHANGED_MEANWHILE"}, reason) ||
		s.Code() == codes.FailedPrecondition && reason == "WORKLOAD_TERMINATING" && detail[*errdetails.RetryInfo](s) != nil {
		return reason
	}
	return ""
}

// end ends the load and tells what was wrong with it.
func (l *load) end(t *testing.T) {
	t.Helper()
	back := time.Now()
	eventually(t, logLimit, "the log goes on", func() error {
		select {
		case <-l.log.done:
			t.Fatalf("the log ends after %d lines with %v", l.log.lines(), l.log.err)
		default:
		}
		if got := l.log.lines(); got < 300 {
			return fmt.Errorf("%d lines have come", got)
		}
		return nil
	})
	t.Logf("the log was whole %s after that", time.Since(back).Round(time.Millisecond))
	l.finish()
	l.all.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) > 0 {
		t.Errorf("%d wrong answers: %v", len(l.wrong), errors.Join(l.wrong[:min(5, len(l.wrong))]...))
	}
	t.Logf("%d reads, %d writes, of which these were told to try again: %v", l.reads, l.writes, l.refused)
	if len(l.refused) == 0 {
		t.Error("no write met the outage")
	}
	l.log.wantNumbered(t, 300)
	select {
	case <-l.exec.ended:
		t.Logf("the command ended with %v, %v, %v", l.exec.exit, l.exec.failure, l.exec.err)
		if l.exec.exit.GetReason() != runnerError {
			t.Errorf("the command ended with %v, %v, %v", l.exec.exit, l.exec.failure, l.exec.err)
		}
	default:
		l.exec.cancel()
	}
}
