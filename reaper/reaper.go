// Package reaper takes away what is left of starts that nobody finished: the
// Pods that still carry the runner's gate after a while, and with them all that
// they own.
package reaper

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/workload"
)

const (
	// looks is how often one grace is looked at, so that none lasts much longer.
	looks = 10
	// longestPause is between two looks, however long the grace.
	longestPause = 10 * time.Second
	// deleteLimit bounds one deletion.
	deleteLimit = 10 * time.Second
)

// Starts knows from memory which starts are unfinished.
type Starts interface {
	Unfinished() []workload.Unfinished
}

// Deleter deletes Pods.
type Deleter interface {
	// Reap deletes a Pod that is still as it was read, and that no start of this
	// process is busy with. It reports whether it did.
	Reap(ctx context.Context, pod workload.Unfinished) (bool, error)
}

// Meter is told of unfinished starts.
type Meter interface {
	// Gated: there are so many, whatever their age.
	Gated(pods int)
	// Reaped: one was taken away.
	Reaped()
}

// Options are what a Reaper is made of.
type Options struct {
	Starts  Starts
	Deleter Deleter
	Meter   Meter
	Log     *logrus.Logger
	// Grace is how long a start may stay unfinished.
	Grace time.Duration
}

// Reaper looks for unfinished starts again and again. Several at once, of as
// many replicas, do no harm: a Pod is deleted once, and only as it was read.
type Reaper struct{ o Options }

// New returns a Reaper.
func New(o Options) *Reaper { return &Reaper{o} }

// Run reaps until ctx ends.
func (r *Reaper) Run(ctx context.Context) {
	tick := time.NewTicker(min(r.o.Grace/looks, longestPause))
	defer tick.Stop()
	for {
		r.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look takes away what is too old. What stays because of a fault is tried again
// at the next look.
func (r *Reaper) look(ctx context.Context) {
	unfinished := r.o.Starts.Unfinished()
	r.o.Meter.Gated(len(unfinished))
	var first error
	stay := 0
	for _, pod := range unfinished {
		age := time.Since(pod.Created)
		if age <= r.o.Grace || ctx.Err() != nil {
			continue
		}
		reaped, err := r.delete(ctx, pod)
		if err != nil {
			if stay++; first == nil {
				first = err
			}
		}
		if reaped {
			r.o.Meter.Reaped()
			r.o.Log.WithFields(logrus.Fields{"pod": pod.Pod, "age": age.Round(time.Second).String()}).Info("took away a start that nobody finished")
		}
	}
	if first != nil && ctx.Err() == nil {
		r.o.Log.WithError(first).WithField("pods", stay).Warn("starts that nobody finished stay for now")
	}
}

func (r *Reaper) delete(ctx context.Context, pod workload.Unfinished) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	return r.o.Deleter.Reap(ctx, pod)
}
