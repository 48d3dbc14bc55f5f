package overlay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// refusal is as an adapter returns it.
func refusal() error {
	return fmt.Errorf("listing services: %w: error for request 1: UNAUTHORIZED", ErrUnauthorized)
}

// TestDeletedIdentity: the terminators are gone, Accept stays blocked, and every
// refresh is refused.
func TestDeletedIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newStandIn(), nil)
		r.after(time.Minute)
		r.wantReady(true)
		r.network.becomes(func(n *standIn) { n.answer = refusal() })
		r.after(6 * time.Second)
		r.wantReady(false)
		took, err := r.ends(time.Minute)
		if !errors.Is(err, ErrUnauthorized) {
			t.Errorf("it ends with %v, want %v", err, ErrUnauthorized)
		}
		if took += 6 * time.Second; took < 15*time.Second || took > 30*time.Second {
			t.Errorf("it took %s to notice", took)
		}
		if got := r.meter.of("refresh " + ResultUnauthorized); got != Default().Refusals {
			t.Errorf("%d refusals were counted, want %d", got, Default().Refusals)
		}
		r.wantBinds(1)
		r.left()
	})
}

// TestDeadIdentity: one that is refused from the start is never served.
func TestDeadIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newStandIn()
		network.answer = refusal()
		r := start(t, network, func(o *Options) {
			o.Serve = func(net.Listener) error {
				t.Error("it is served")
				return nil
			}
		})
		took, err := r.ends(time.Minute)
		if !errors.Is(err, ErrUnauthorized) {
			t.Errorf("it ends with %v, want %v", err, ErrUnauthorized)
		}
		if took < 15*time.Second || took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
		if got := r.meter.of("bind " + ResultUnauthorized); got != Default().Refusals {
			t.Errorf("%d refusals were counted, want %d", got, Default().Refusals)
		}
		r.left()
	})
}

// TestRefusalsInARow: only those count, whatever comes between.
func TestRefusalsInARow(t *testing.T) {
	for name, between := range map[string]error{
		"well": nil, "out of reach": errors.New("connect: connection refused"), "late": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, newStandIn(), func(o *Options) { o.Refusals = 4 })
				for range 3 {
					refusals := r.meter.of("refresh " + ResultUnauthorized)
					r.network.becomes(func(n *standIn) { n.answer = refusal() })
					r.waitFor("refresh "+ResultUnauthorized, refusals+3)
					r.wantReady(false)
					r.network.becomes(func(n *standIn) { n.answer = between })
					r.after(6 * time.Second)
					r.wantReady(between == nil)
				}
				r.wantBinds(1)
				r.finish()
			})
		})
	}
}

// TestOutOfReach: an overlay that cannot be reached for a while says nothing about the
// identity.
func TestOutOfReach(t *testing.T) {
	outages := map[string]func(*standIn){
		"refused": func(n *standIn) { n.answer, n.led = errors.New("connect: connection refused"), false },
		"silent":  func(n *standIn) { n.silent, n.led = true, false },
	}
	for name, outage := range outages {
		for _, length := range []time.Duration{time.Minute, time.Hour} {
			t.Run(fmt.Sprintf("%s for %s", name, length), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := start(t, newStandIn(), nil)
					r.wantReady(true)
					r.network.becomes(outage)
					for range length / time.Second {
						r.after(time.Second)
						r.wantReady(false)
					}
					r.network.becomes(func(n *standIn) { n.answer, n.silent = nil, false })
					r.after(time.Minute) // the routers come later
					r.wantReady(false)
					r.network.becomes(func(n *standIn) { n.led = true })
					r.after(0)
					r.wantReady(true)
					r.wantBinds(1)
					r.finish()
				})
			})
		}
	}
}

// TestSilence: it is noticed, although the router still leads here.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newStandIn(), nil)
		r.network.becomes(func(n *standIn) { n.silent = true })
		r.after(Default().Poll + Default().Answer + time.Second)
		r.wantReady(false)
		r.network.becomes(func(n *standIn) { n.silent = false })
		r.after(30 * time.Second)
		r.wantReady(true)
		r.wantBinds(1)
		r.finish()
	})
}

// TestOutOfReachFromTheStart: it is waited for.
func TestOutOfReachFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newStandIn()
		network.silent = true
		r := start(t, network, nil)
		r.after(time.Hour)
		r.wantReady(false)
		network.becomes(func(n *standIn) { n.silent = false })
		r.after(time.Minute)
		r.wantReady(true)
		r.finish()
	})
}

// TestRouterRestart: refreshing works while no router leads here. That takes up to 50 s,
// and is left to pass. What takes much longer is bound anew.
func TestRouterRestart(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		binds  int
	}{{50 * time.Second, 1}, {2*time.Minute + 30*time.Second, 2}} {
		t.Run(c.length.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, newStandIn(), nil)
				r.after(10 * time.Minute)
				r.network.becomes(func(n *standIn) { n.led = false })
				for range c.length / time.Second {
					r.wantReady(false)
					r.after(time.Second)
				}
				r.network.becomes(func(n *standIn) { n.led = true })
				r.after(2 * time.Second)
				r.wantReady(true)
				r.wantBinds(c.binds)
				r.finish()
			})
		})
	}
}

// TestListenerDrops: it is bound again at once.
func TestListenerDrops(t *testing.T) {
	once := func(r *running, drop func()) {
		r.after(time.Minute)
		for want := 2; want < 5; want++ {
			drop()
			r.after(500 * time.Millisecond)
			r.wantBinds(want)
			r.wantReady(true)
			r.after(time.Minute)
		}
		r.wantBinds(4)
		r.finish()
	}
	t.Run("Accept fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, newStandIn(), nil)
			once(r, func() { r.network.bound().drop() })
		})
	})
	t.Run("Serve returns nil", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, newStandIn(), func(o *Options) {
				o.Serve = func(l net.Listener) error {
					accept(l) // it is what is not told
					return nil
				}
			})
			once(r, func() { r.network.bound().drop() })
		})
	})
}

// TestNeverServed: what cannot be served is not bound in a tight loop.
func TestNeverServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newStandIn(), func(o *Options) { o.Serve = func(net.Listener) error { return nil } })
		r.after(10 * time.Minute)
		if binds, _ := r.network.counted(); binds < 15 || binds > 30 {
			t.Errorf("it was bound %d times in ten minutes", binds)
		}
		r.finish()
	})
}
