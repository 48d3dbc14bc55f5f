package overlay

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// firstPause is before the second attempt to bind; from there on it doubles, up to
	// longestPause. The first is made at once.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// doublings reach longestPause.
	doublings = 5
)

// beforeTry is how long to wait before the next attempt to bind.
func (b *Binding) beforeTry() time.Duration {
	switch {
	case b.refusals > 0:
		return jittered(b.o.Poll) // as often as a bound service asks
	case b.tries == 0:
		return 0
	}
	return jittered(min(firstPause<<min(b.tries-1, doublings), longestPause))
}

// jittered varies a time by a tenth, so that many runners do not ask together.
func jittered(t time.Duration) time.Duration {
	return t + time.Duration((rand.Float64()-0.5)/5*float64(t)) //nolint:gosec // nobody gains by guessing it
}

// pause waits for t. It reports false once ctx has ended.
func pause(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// await waits until ended is closed, up to limit.
func await(ended <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
