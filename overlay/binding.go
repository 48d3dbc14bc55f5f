package overlay

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// Options are what a Binding is made of. Times that are zero are those of Default.
type Options struct {
	Network Network
	// Serve serves a listener until that is closed. After the end of ctx it may end by
	// itself instead, when the calls in flight have ended. It is called again for each
	// listener.
	Serve func(net.Listener) error
	Meter Meter
	Log   *logrus.Logger

	// Poll is how often the overlay is asked whether it still accepts the identity.
	Poll time.Duration
	// Answer bounds one such question, and one attempt to bind.
	Answer time.Duration
	// Refusals is how many of them in a row the overlay has to answer with
	// ErrUnauthorized before the identity counts as lost.
	Refusals int
	// Unled is how long the overlay may be well without a router that leads callers
	// here, before the service is bound anew. A router that restarts takes up to 50 s.
	Unled time.Duration
	// Drain is how long Serve may take to end by itself, after ctx, for the calls in
	// flight.
	Drain time.Duration
	// Closing is how long Serve may take to end after its listener was closed.
	Closing time.Duration
}

// Default returns the times that Options have unless they say others: an identity
// that is gone is noticed in about 25 s.
func Default() Options {
	return Options{
		Poll: 5 * time.Second, Answer: 20 * time.Second, Refusals: 5,
		Unled: 2 * time.Minute, Drain: 15 * time.Second, Closing: 5 * time.Second,
	}
}

func (o Options) complete() Options {
	d := Default()
	for _, t := range []struct{ time, or *time.Duration }{
		{&o.Poll, &d.Poll}, {&o.Answer, &d.Answer}, {&o.Unled, &d.Unled}, {&o.Drain, &d.Drain}, {&o.Closing, &d.Closing},
	} {
		if *t.time == 0 {
			*t.time = *t.or
		}
	}
	if o.Refusals == 0 {
		o.Refusals = d.Refusals
	}
	return o
}

// stopping is why a service is not ready at its end.
const stopping = "the service is stopping"

// Binding is a service that is bound on an overlay, as far as that can be.
type Binding struct {
	o Options
	// refusals counts answers in a row that were ErrUnauthorized, tries the attempts
	// to bind since the service was last well. Both are Run's alone.
	refusals, tries int

	mu       sync.Mutex
	listener Listener // the one that is served
	lacks    string   // why the service is not ready, if its listener alone does not tell
}

// New returns a Binding that Run binds. Options.Network is its own from here on.
func New(o Options) *Binding {
	return &Binding{o: o.complete(), lacks: "the service is not bound yet"}
}

// Ready reports whether callers reach the service: the overlay accepts the identity,
// and one of its routers leads here. If not, it says why. It does not block.
func (b *Binding) Ready() (ready bool, reason string) {
	b.mu.Lock()
	listener, lacks := b.listener, b.lacks
	b.mu.Unlock()
	if lacks != "" {
		return false, lacks
	}
	if !listener.Established() {
		return false, "no router of the overlay leads callers here"
	}
	return true, ""
}

// Run binds and serves until ctx ends, and then returns nil. Its only error is
// ErrUnauthorized, for an identity that the overlay has refused again and again. An
// overlay that is out of reach, for however long, is waited for. At the end
// the network is closed; Run waits for Serve, but not for ever.
func (b *Binding) Run(ctx context.Context) error {
	defer func() {
		if err := b.o.Network.Close(); err != nil {
			b.o.Log.WithError(err).Warn("leaving the overlay")
		}
	}()
	for ctx.Err() == nil {
		listener, err := b.bind(ctx)
		if err != nil {
			return err
		}
		if listener == nil {
			break // ctx has ended
		}
		if err := b.serve(ctx, listener); err != nil {
			return err
		}
	}
	b.unready(stopping)
	return nil
}

// bind tries to bind the service until it is bound, or ctx ends: then there is no
// listener.
func (b *Binding) bind(ctx context.Context) (Listener, error) {
	for ; pause(ctx, b.beforeTry()); b.tries++ {
		limited, stop := context.WithTimeout(ctx, b.o.Answer)
		listener, err := b.o.Network.Listen(limited)
		stop()
		if ctx.Err() != nil {
			closeLate(listener)
			break
		}
		b.o.Meter.Bound(result(err))
		if err == nil {
			b.tries++
			b.refusals = 0
			b.serves(listener)
			b.o.Log.WithField("service", listener.Addr().String()).Info("bound on the overlay")
			return listener, nil
		}
		b.o.Log.WithError(err).Warn("binding the service on the overlay")
		if err := b.judge(fmt.Errorf("binding the service: %w", err)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// judge notes that the overlay is not well. It returns the error to end with if that
// is because it has refused the identity often enough.
func (b *Binding) judge(err error) error {
	b.unready(err.Error())
	if result(err) != ResultUnauthorized {
		b.refusals = 0
		return nil
	}
	if b.refusals++; b.refusals < b.o.Refusals {
		return nil
	}
	err = fmt.Errorf("the runner has lost its identity: the overlay has refused it %d times in a row; a restart enrols again: %w", b.refusals, err)
	b.unready(err.Error())
	return err
}

func closeLate(listener Listener) {
	if listener != nil {
		listener.Close() //nolint:errcheck,gosec // nobody has used it
	}
}

func (b *Binding) serves(listener Listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listener, b.lacks = listener, ""
}

func (b *Binding) unready(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lacks = reason
}
