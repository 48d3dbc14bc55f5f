//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	faultRuns = flag.Uint64("fault-runs", 300, "how many random runs TestFaults makes")
	faultSeed = flag.Uint64("fault-seed", 0, "the one run that TestFaults makes, to see a failure again")
)

const (
	faultLanes = 6
	// runLimit bounds one run.
	runLimit = 2 * time.Minute
	// settleLimit bounds the wait for what still goes on after the last answer: the
	// undo of a start whose caller has left, and the garbage collector.
	settleLimit = 20 * time.Second
)

// TestFaults: whatever fails between callers, runner and API server, a workload is
// what its last successful call says, and nothing is left of what is gone. A run
// is a function of its seed.
func TestFaults(t *testing.T) {
	setUnschedulable(t, "true")
	t.Cleanup(func() { setUnschedulable(t, "false") })
	// Runs with and without policies have runners of their own.
	seeds := map[bool]chan uint64{true: make(chan uint64, *faultRuns), false: make(chan uint64, *faultRuns)}
	lanes := faultLanes
	if *faultSeed != 0 {
		seeds[hasPolicies(*faultSeed)] <- *faultSeed
		lanes = 2
	} else {
		for seed := uint64(1); seed <= *faultRuns; seed++ {
			seeds[hasPolicies(seed)] <- seed
		}
	}
	close(seeds[true])
	close(seeds[false])
	var running sync.WaitGroup
	for i := range lanes {
		policies := i%2 == 1
		if len(seeds[policies]) == 0 {
			continue
		}
		running.Go(func() {
			t.Run(fmt.Sprintf("lane %d", i), func(t *testing.T) { newLane(t, policies).runAll(seeds[policies]) })
		})
	}
	running.Wait()
}

// runAll makes the runs of seeds, until one fails, and waits until nothing is left
// of them.
func (l *lane) runAll(seeds <-chan uint64) {
	runs, begin := 0, time.Now()
	for seed := range seeds {
		l.run(seed)
		runs++
		if l.Failed() {
			return // another would take long to tell the same
		}
	}
	l.proxy.follow(plan{})
	l.revive()
	wantNothingOwned(l.T, l.ns.name)
	l.Logf("%d runs took %s", runs, time.Since(begin).Round(time.Second))
}

// run makes one run.
func (l *lane) run(seed uint64) {
	ctx, cancel := context.WithTimeout(l.Context(), runLimit)
	defer cancel()
	begin := time.Now()
	m, random := newModel(seed)
	l.proxy.follow(newPlan(seed))
	err := func() error {
		for number := range 4 + random.IntN(5) {
			if err := l.perform(ctx, m, m.step(random, number)); err != nil {
				return err
			}
		}
		return l.wantKnown(ctx, m, settleLimit)
	}()
	if err != nil {
		l.Errorf("run -fault-seed %d: %v\n%s", seed, err, strings.Join(l.proxy.told(), "\n"))
	}
	l.proxy.follow(plan{})
	l.revive()
	l.clear(ctx, m)
	l.Logf("run %d took %s", seed, time.Since(begin).Round(time.Millisecond))
}
