package overlay

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrain: calls in flight end first, however the server does that.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 3 * time.Second
		ctx, stop := context.WithCancel(t.Context())
		var closed bool
		r := start(t, newStandIn(), func(o *Options) {
			o.Serve = func(l net.Listener) error {
				<-ctx.Done()
				time.Sleep(calls)
				closed = l.(*standInListener).closed.Load()
				return nil
			}
		})
		stop()
		r.stop()
		took, err := r.ends(time.Minute)
		if err != nil || took != calls {
			t.Errorf("it ended after %s with %v, want after %s", took, err, calls)
		}
		if closed {
			t.Error("the listener was closed under the calls in flight")
		}
		r.left()
	})
}

// TestServeNeverEnds: nobody waits for it for ever.
func TestServeNeverEnds(t *testing.T) {
	for name, end := range map[string]func(*running){
		"the service ends": func(r *running) { r.stop() },
		"the identity is lost": func(r *running) {
			r.network.becomes(func(n *standIn) { n.answer = refusal() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				r := start(t, newStandIn(), func(o *Options) {
					o.Serve = func(net.Listener) error {
						<-hang
						return nil
					}
				})
				end(r)
				r.ends(40 * time.Second) // it ends, which is all
				r.left()
				close(hang)
			})
		})
	}
}

// TestEndWhileUnbound: an attempt to bind is given up, and so is a listener that comes
// nevertheless.
func TestEndWhileUnbound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newStandIn()
		network.silent = true
		r := start(t, network, nil)
		r.stop()
		if took, err := r.ends(time.Minute); took != 0 || err != nil {
			t.Errorf("it ended after %s with %v", took, err)
		}
		r.result <- nil
		r.finish()
	})
	synctest.Test(t, func(t *testing.T) {
		network := &late{standIn: newStandIn()}
		ctx, stop := context.WithCancel(t.Context())
		b := New(Options{Network: network, Serve: accept, Meter: &counts{by: map[string]int{}}, Log: quiet()})
		result := make(chan error, 1)
		go func() { result <- b.Run(ctx) }()
		synctest.Wait()
		stop()
		if err := <-result; err != nil {
			t.Errorf("it ended with %v", err)
		}
		if open := network.open(); open != 0 {
			t.Errorf("%d listeners are open", open)
		}
	})
}

// late is a network that listens although nobody waits for it any more.
type late struct{ *standIn }

func (n *late) Listen(ctx context.Context) (Listener, error) {
	<-ctx.Done()
	return n.standIn.Listen(context.WithoutCancel(ctx))
}
