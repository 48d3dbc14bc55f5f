//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agynio/k8s-runner/e2e/gateway"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const (
	// awayFor is how long a gateway takes nothing, awayWorkloads how many change then.
	awayFor       = 30 * time.Second
	awayWorkloads = 200
	// slowness is that of each call, where it is slow.
	slowness = 10 * time.Second
	// backLimit is how soon all is told after it is well again: two seconds, and as
	// many for a busy machine.
	backLimit = 4 * time.Second
	// usefulLimit is in how much time a caller's read, or a start with its removal, is
	// done all the same.
	usefulLimit = 8 * time.Second
	// keptLimit is how much memory may be kept meanwhile, in bytes.
	keptLimit = 8 << 20
)

// TestGatewayThatIsAway: while a gateway is down, or slow, workloads change, start and
// are read as ever; then the platform soon has the newest state of each.
func TestGatewayThatIsAway(t *testing.T) {
	t.Setenv("GOGC", "20") // so that what lives is most of what there is
	for name, c := range map[string]struct {
		leave, comeBack func(*platform)
		// takes is how many states of each it takes meanwhile, at least.
		takes int
	}{
		"down": {func(p *platform) { p.Stop() }, func(p *platform) { p.start(t) }, 0},
		"slow": {func(p *platform) { p.Behave(gateway.Conduct{Delay: slowness}) }, func(p *platform) { p.Behave(gateway.Conduct{}) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			ns := newNamespace(t)
			r := startRunner(t, ns, p.flags()...)
			cordon(t, ns.name)
			ids := r.simulate(t, nil, awayWorkloads)
			eventually(t, 10*time.Second, "all are told to run", func() error { return p.wantAll(ids, 0) })
			_, before := r.memory(t)
			first := p.count(ids)
			c.leave(p)
			last := r.change(t, ids, awayFor)
			_, after := r.memory(t)
			if grown := after - before; grown > keptLimit {
				t.Errorf("what lives in memory grew by %.1f MiB", grown/1024/1024)
			}
			told := p.count(ids)
			if told-first < c.takes*len(ids) {
				t.Errorf("it took %d states meanwhile", told-first)
			}
			c.comeBack(p)
			back := time.Now()
			eventually(t, backLimit, "the newest states are told", func() error { return p.wantAll(ids, last) })
			t.Logf("of %d changes of each of %d, the newest were told %s after it was back, with %d reports; what lives in memory grew by %.1f MiB",
				last, len(ids), time.Since(back).Round(time.Millisecond), p.count(ids)-told, (after-before)/1024/1024)
			for _, id := range ids {
				p.wantForward(t, id)
			}
		})
	}
}

// change changes each workload again and again for a while, and reads and starts others
// meanwhile. It returns the last count of restarts, which all have in the end.
func (r *runner) change(t *testing.T, ids []string, during time.Duration) (last int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var all sync.WaitGroup
	var reads, starts atomic.Int64
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			bounded, end := context.WithTimeout(t.Context(), usefulLimit)
			_, err := r.InspectWorkload(bounded, &runnerv1.InspectWorkloadRequest{WorkloadId: ids[i%len(ids)]})
			end()
			if err != nil {
				t.Errorf("a read: %v", err)
				return
			}
			reads.Add(1)
			time.Sleep(2 * time.Millisecond)
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			bounded, end := context.WithTimeout(t.Context(), usefulLimit)
			started, err := r.StartWorkload(bounded, sleeper())
			if err == nil {
				_, err = r.RemoveWorkload(bounded, &runnerv1.RemoveWorkloadRequest{WorkloadId: started.GetId(), Force: true})
			}
			end()
			if err != nil && status.Code(err) != codes.NotFound {
				t.Errorf("a start: %v", err)
				return
			}
			starts.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
	})
	for last = 1; ; last++ {
		for _, id := range ids {
			if err := says(t.Context(), r.namespace, "workload-"+id, last); err != nil {
				t.Fatal(err)
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	all.Wait()
	t.Logf("%d reads and %d starts meanwhile", reads.Load(), starts.Load())
	return last
}

// wantAll returns what keeps the newest state of each workload from being one that runs
// with so many restarts.
func (p *platform) wantAll(ids []string, restarts int) error {
	for _, id := range ids {
		newest := p.Newest(id)
		if newest == nil || newest.GetStatus() != reportedRunning || int(newest.GetContainers()[0].GetRestartCount()) != restarts {
			return fmt.Errorf("of %s it is told %v", id, newest)
		}
	}
	return nil
}

// count is how many states of the workloads were told.
func (p *platform) count(ids []string) (states int) {
	for _, id := range ids {
		states += len(p.States(id))
	}
	return states
}
