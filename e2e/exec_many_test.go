//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// goroutines is how many the runner has.
func (r *runner) goroutines(t testing.TB) int {
	t.Helper()
	_, text := r.get(t, "/metrics")
	_, rest, _ := strings.Cut(text, "\ngo_goroutines ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the metrics have no number of goroutines: %v", err)
	}
	return n
}

// TestExecMany: two hundred commands at once all have what they need, and leave
// nothing in the runner.
func TestExecMany(t *testing.T) {
	const many = 200
	r := startRunner(t, newNamespace(t))
	id := r.sleeping(t)
	r.run(t, script(id, "true"))
	before, _ := r.usage(t)
	few := r.goroutines(t)
	begin := time.Now()
	all := make([]*execution, many)
	for i := range all {
		all[i] = r.execute(t, script(id, "echo ready; while read -r line; do echo \"$line\"; done"))
	}
	for _, x := range all {
		x.awaitOutput(t, "ready")
	}
	busy, _ := r.usage(t)
	t.Logf("%d run after %s, with %d KiB each (the binary looks for races, which takes most of it) and %d goroutines", many,
		time.Since(begin).Round(time.Millisecond), (busy-before)/many, (r.goroutines(t)-few)/many)
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
	eventually(t, 20*time.Second, "their goroutines are gone", func() error {
		if n := r.goroutines(t); n > few+20 { // connections that the HTTP client keeps
			return fmt.Errorf("there are %d, and %d before", n, few)
		}
		return nil
	})
}
