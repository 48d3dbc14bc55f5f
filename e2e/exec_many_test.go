//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// memory is the resident memory of the runner, in bytes.
func (r *runner) memory(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// TestExecMany: two hundred commands at once all have what they need, and leave
// nothing in the runner.
func TestExecMany(t *testing.T) {
	const many = 200
	r := startRunner(t, newNamespace(t))
	id := r.sleeping(t)
	r.run(t, script(id, "true"))
	before := r.memory(t)
	begin := time.Now()
	all := make([]*execution, many)
	for i := range all {
		all[i] = r.execute(t, script(id, "echo ready; while read -r line; do echo \"$line\"; done"))
	}
	for _, x := range all {
		x.awaitOutput(t, "ready")
	}
	t.Logf("%d run after %s, with %d KiB each", many, time.Since(begin).Round(time.Millisecond), (r.memory(t)-before)/many>>10)
	var slowest time.Duration
	for round := range 3 {
		var group errgroup.Group
		times := make([]time.Duration, many)
		for i, x := range all {
			group.Go(func() error {
				begin, line := time.Now(), fmt.Sprintf("line %d of %d\n", round, i)
				x.stdin(t, []byte(line))
				x.awaitOutput(t, line)
				times[i] = time.Since(begin)
				return nil
			})
		}
		_ = group.Wait()
		for _, d := range times {
			slowest = max(slowest, d)
		}
	}
	t.Logf("the slowest of %d lines came back after %s", 3*many, slowest.Round(time.Millisecond))
	for _, x := range all {
		if err := x.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range all {
		if exit := x.end(t); exit.GetExitCode() != 0 {
			t.Errorf("one ends with %v", exit)
		}
	}
}
