package applier

import (
	"context"
	"time"
)

// Between two tries of a write that the server could not do.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	// maxTries bounds a caller without a deadline, to some ten seconds.
	maxTries = 10
)

// retry does write, and again within the caller's deadline as long as the fault
// passes.
func retry[T any](ctx context.Context, passes func(error) bool, write func() (T, error)) (T, error) {
	pause := firstPause
	deadline, bounded := ctx.Deadline()
	for tries := 1; ; tries++ {
		begin := time.Now()
		made, err := write()
		if err == nil || !passes(err) || !bounded && tries == maxTries {
			return made, err
		}
		if bounded && time.Until(deadline) < 2*max(pause, time.Since(begin)) {
			return made, err // no time for another try and its answer
		}
		select {
		case <-ctx.Done():
			return made, err
		case <-time.After(pause):
			pause = min(2*pause, lastPause)
		}
	}
}
