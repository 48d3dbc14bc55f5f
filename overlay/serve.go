package overlay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// serve serves a listener until it drops, or has to be bound anew, or ctx ends. Its
// error ends the Binding.
func (b *Binding) serve(ctx context.Context, listener Listener) error {
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop(noted(b.o.Serve(listener)))
	}()
	lost := b.watch(serving, listener)
	switch {
	case lost != nil:
	case ctx.Err() != nil:
		b.unready(stopping)
		await(ended, b.o.Drain)
	default:
		b.unready("the service is not bound any more")
		if cause := context.Cause(serving); cause != nil {
			b.o.Log.WithError(cause).Warn("the listener on the overlay has ended")
		}
	}
	if err := listener.Close(); err != nil {
		b.o.Log.WithError(err).Debug("closing the listener on the overlay")
	}
	// Accept has been seen to wait for ever on an overlay that was no more.
	if !await(ended, b.o.Closing) {
		b.o.Log.Warn("serving on the overlay has not ended; it is left alone")
	}
	return lost
}

// noted makes an error of a listener's end.
func noted(err error) error {
	if err == nil {
		return errors.New("serving has ended")
	}
	return err
}

// watch asks the overlay again and again while the listener is served. It returns nil
// when serving has ended, or should.
func (b *Binding) watch(serving context.Context, listener Listener) error {
	led := time.Now()
	last := ResultOK
	for pause(serving, jittered(b.o.Poll)) {
		err := b.refresh(serving)
		if serving.Err() != nil {
			return nil
		}
		now := result(err)
		b.o.Meter.Refreshed(now)
		if now != last {
			b.tell(err)
		}
		last = now
		if err != nil {
			led = time.Now()
			if err := b.judge(fmt.Errorf("asking the overlay: %w", err)); err != nil {
				return err
			}
			continue
		}
		b.refusals = 0
		b.serves(listener)
		switch {
		case listener.Established():
			b.tries = 0
			led = time.Now()
		case time.Since(led) >= b.o.Unled:
			b.o.Log.Warnf("no router of the overlay has led callers here for %s", b.o.Unled)
			return nil
		}
	}
	return nil
}

func (b *Binding) refresh(ctx context.Context) error {
	limited, stop := context.WithTimeout(ctx, b.o.Answer)
	defer stop()
	return b.o.Network.Refresh(limited)
}

// tell logs a change, and not each answer.
func (b *Binding) tell(err error) {
	switch {
	case err == nil:
		b.o.Log.Info("the overlay is well again")
	case errors.Is(err, ErrUnauthorized):
		b.o.Log.WithError(err).Warn("the overlay refuses the runner's identity")
	default:
		b.o.Log.WithError(err).Warn("the overlay is out of reach")
	}
}
