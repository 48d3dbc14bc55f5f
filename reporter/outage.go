package reporter

import (
	"context"
	"sync"
	"time"
)

const (
	// probeEvery is the longest pause between two reports that find out whether the
	// gateway is back, and rejectedEvery the one where it rejects the service token.
	probeEvery    = time.Second
	rejectedEvery = 30 * time.Second
)

// outage is a time in which the gateway answers nobody. While it lasts one report at a
// time is made, to find out: a gateway that is in trouble is not asked by all
// workloads at once, and once it answers, all go on.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero while there is none
	// why is what the last call said.
	why string
	// over is closed at the end.
	over chan struct{}
	// probes has an item when a probe is due; probing is true until its answer.
	probes  chan struct{}
	probing bool
	pause   time.Duration
	due     *time.Timer
}

func newOutage() *outage { return &outage{probes: make(chan struct{}, 1)} }

// await returns when a report may be made: at once, or if there is an outage at its
// end or when a probe is due.
func (o *outage) await(ctx context.Context) error {
	o.mu.Lock()
	over := o.over
	if o.since.IsZero() {
		o.mu.Unlock()
		return nil
	}
	o.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-over:
	case <-o.probes:
	}
	return nil
}

// begin notes that a call got no answer, and reports whether that is news.
func (o *outage) begin(why string, atMost time.Duration) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.why = why
	if o.since.IsZero() {
		news, o.since, o.over, o.pause = true, time.Now(), make(chan struct{}), firstPause/2
	} else if !o.probing {
		return false // of a call that was on its way
	}
	o.probing = false
	o.pause = min(2*o.pause, atMost)
	over := o.over
	o.due = time.AfterFunc(jittered(o.pause), func() { o.probe(over) })
	return news
}

func (o *outage) probe(of chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || o.over != of || o.probing {
		return
	}
	o.probing = true
	wake(o.probes) // one may be in it that nobody had a report for
}

// unused gives back a probe for which there was no report.
func (o *outage) unused() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.probing {
		wake(o.probes)
	}
}

// end notes that there was an answer, and returns for how long there had been none.
func (o *outage) end() (after time.Duration, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return 0, false
	}
	after = time.Since(o.since)
	o.due.Stop()
	close(o.over)
	o.since, o.why, o.probing = time.Time{}, "", false
	select {
	case <-o.probes:
	default:
	}
	return after, true
}

// now returns since when there is an outage, zero if there is none, and why.
func (o *outage) now() (since time.Time, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.why
}
