//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestKilledStart kills the runner after each single write of a start with all
// that a workload can have: the same request completes it, and nothing is there
// twice.
func TestKilledStart(t *testing.T) {
	killed(t, 7, func(l *lane, m *model, p plan) error { // Pod, two Secrets, policy, two claims, gate
		l.proxy.follow(p)
		return l.perform(l.Context(), m, []*op{{does: toStart, subject: m.subjects[0], request: m.newRequest(m.subjects[0], "1")}})
	})
}

// TestKilledRemove does so with a removal: made again, it leaves nothing.
func TestKilledRemove(t *testing.T) {
	killed(t, 3, func(l *lane, m *model, p plan) error { // two claims, Pod
		l.proxy.follow(plan{})
		if err := l.perform(l.Context(), m, []*op{{does: toStart, subject: m.subjects[0], request: m.newRequest(m.subjects[0], "1")}}); err != nil {
			return err
		}
		l.proxy.follow(p)
		return l.perform(l.Context(), m, []*op{{does: toRemoveAll, subject: m.subjects[0]}})
	})
}

// TestForgottenStart does so with a start that nobody makes again: the runner takes
// away what is left of it.
func TestForgottenStart(t *testing.T) {
	if why, is := notInstalled(t.Name()); is && *throughChart {
		t.Skip("not with -chart: " + why)
	}
	var left atomic.Int32
	killed(t, 7, func(l *lane, m *model, p plan) error {
		l.proxy.follow(p)
		err := l.perform(l.Context(), m, []*op{{does: toStart, subject: m.subjects[0], request: m.newRequest(m.subjects[0], "1"), givesUp: true}})
		if err != nil {
			return err
		}
		w, err := look(l.Context(), l.ns.name, m.run)
		for _, pod := range w.pods {
			if isGated(pod) {
				left.Add(1)
			}
		}
		return err
	})
	if left.Load() == 0 {
		t.Error("no start has left anything")
	}
}

// killed makes calls once without a fault, which takes so many writes, and then
// with the runner killed after each of them, with and without having heard of it.
func killed(t *testing.T, writes int, calls func(*lane, *model, plan) error) {
	setUnschedulable(t, "true")
	t.Cleanup(func() { setUnschedulable(t, "false") })
	var running sync.WaitGroup
	for _, tells := range []bool{true, false} {
		running.Go(func() {
			t.Run(fmt.Sprintf("heard %v", tells), func(t *testing.T) {
				l := newLane(t, true)
				for k := range writes + 1 {
					s := &subject{id: newID(), state: gone, shape: shape{secrets: true, own: true, shared: true}}
					m := &model{run: fmt.Sprintf("killed-%d", k), policies: true, subjects: []*subject{s}, claims: map[string]*claimState{}}
					for _, name := range m.claimsOf(s) {
						m.claims[name] = &claimState{state: gone}
					}
					p := plan{kills: map[int]bool{k: tells}} // none is write 0
					err := calls(l, m, p)
					if err == nil {
						err = l.wantKnown(t.Context(), m, settleLimit)
					}
					made, deaths := l.proxy.counted()
					if k == 0 && made != writes || k > 0 && deaths != 1 {
						err = fmt.Errorf("after %d writes of %d the runner has been killed %d times, %w", made, writes, deaths, orNone(err))
					}
					if err != nil {
						t.Fatalf("killed after write %d: %v\n%s", k, err, strings.Join(l.proxy.told(), "\n"))
					}
					l.clear(t.Context(), m)
				}
				l.proxy.follow(plan{})
				wantNothingOwned(t, l.ns.name)
			})
		})
	}
	running.Wait()
}
