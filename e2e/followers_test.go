//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestManyFollowers: of 200 at once, more than a node can follow for by default,
// none starves, and when they are gone nothing of them stays.
func TestManyFollowers(t *testing.T) {
	const followers, workloads, lines = 200, 4, 20
	r := startRunner(t, newNamespace(t))
	var ids []string
	for range workloads {
		req := sleeper()
		req.Main = shell(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i .; sleep 1; done; sleep 5`, lines))
		r.start(t, req)
		ids = append(ids, req.GetWorkloadId())
	}
	for _, id := range ids {
		r.await(t, id, "it runs", running)
	}
	memory, files := r.usage(t)
	calls := make([]*logCall, followers)
	for i := range calls {
		calls[i] = r.follow(t, ids[i%workloads])
	}
	var busy, open int
	eventually(t, 60*time.Second, "all have ten lines", func() error {
		busy, open = r.usage(t)
		for i, c := range calls {
			if !strings.Contains(c.text(), "\n10 .\n") {
				return fmt.Errorf("follower %d has %q", i, c.text())
			}
		}
		return nil
	})
	t.Logf("%d followers take %d KiB each (the binary looks for races, which takes most of it), and have %d files open", followers, (busy-memory)/followers, open-files)
	for i, c := range calls {
		if code := c.wait(t, time.Minute); code != codes.OK {
			t.Errorf("follower %d ends with %v", i, c.err)
		}
		c.wantNumbered(t, lines)
	}
	const kept = 2 * 25 // by the HTTP clients of those that are followed, and that are read; for the next request
	eventually(t, 30*time.Second, "their connections are closed", func() error {
		if _, now := r.usage(t); now > files+kept {
			return fmt.Errorf("%d files are open, %d before", now, files)
		}
		return nil
	})
}

// usage returns the memory of the runner in KiB, and how many files it has open.
func (r *runner) usage(t testing.TB) (memory, files int) {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(r.process.Process.Pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			memory, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		}
	}
	open, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return memory, len(open)
}

// TestTooManyStreams: more than the limit of a workload are refused, those of
// another one are not.
func TestTooManyStreams(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--streams-per-workload", "2")
	one, other := sleeper(), sleeper()
	for _, req := range []*runnerv1.StartWorkloadRequest{one, other} {
		req.Main = shell("echo begins; sleep 1000")
		r.start(t, req)
	}
	for range 2 {
		r.follow(t, one.GetWorkloadId()).awaits(t, "begins\n")
	}
	third := r.follow(t, one.GetWorkloadId())
	third.wait(t, 10*time.Second)
	wantError(t, third.err, codes.ResourceExhausted, "TOO_MANY_STREAMS")
	r.follow(t, other.GetWorkloadId()).awaits(t, "begins\n")
}

// TestShutdown ends the streams, with a word, before the runner ends.
func TestShutdown(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main = shell("echo begins; sleep 1000")
	r.start(t, req)
	logs := r.follow(t, req.GetWorkloadId())
	logs.awaits(t, "begins\n")
	events := r.events(t, &runnerv1.StreamEventsRequest{})
	events.awaits(t, "the Pod is scheduled", func(e kubeEvent) bool { return e.Reason == "Scheduled" })
	begin := time.Now()
	r.stop(t)
	for _, done := range []chan struct{}{logs.done, events.done} {
		select {
		case <-done:
		case <-time.After(time.Second):
			t.Fatal("a stream outlives the runner")
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end takes %v", took)
	}
	wantError(t, logs.err, codes.Unavailable, "SHUTTING_DOWN")
	wantError(t, events.err, codes.Unavailable, "SHUTTING_DOWN")
}
