// Package again says when to ask the API server again for what a stream brings,
// and when to give up.
package again

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/agynio/k8s-runner/workload"
)

const (
	// Limit is how long the API server may fail.
	Limit = time.Minute
	// roleLimit is how long an API server may refuse what it allowed before.
	roleLimit = 15 * time.Second
	// AtOnce is the first pause where no other is said.
	AtOnce = 50 * time.Millisecond
	// longest is the longest pause of ours, and patience of those that the server
	// can ask for.
	longest  = 2 * time.Second
	patience = 10 * time.Second
	// retryLater is what a caller is told.
	retryLater = time.Second
)

// Unsent is an error of the caller's side, after which there is no other attempt.
type Unsent struct{ Err error }

// Error returns that of Err.
func (e Unsent) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e Unsent) Unwrap() error { return e.Err }

// Attempt is how an attempt went.
type Attempt struct {
	// Err is why there has to be another one.
	Err error
	// Answered is true if the API server could do its part, Moved if the stream got
	// further.
	Answered, Moved bool
	// First is the pause after an attempt that moved; from there on it doubles.
	First time.Duration
}

// Pauses are those between the attempts of one stream. The zero value is for a
// stream that begins.
type Pauses struct {
	// What the stream does, for the words of an error: "read logs".
	What string

	failing time.Time
	last    time.Duration
	// answered is true once the API server has done its part; refused is since when
	// it has said after that, that the runner may not ask.
	answered bool
	refused  time.Time
}

// After returns the length of the pause after an attempt, or what the caller is
// told if there shall be no other attempt.
func (p *Pauses) After(a Attempt) (time.Duration, error) {
	switch {
	case apierrors.IsForbidden(a.Err) && !p.passing():
		return 0, workload.Errorf(workload.PermissionDenied, "runner_not_allowed",
			"the runner's Role lacks a verb that it needs to %s", p.What).Because(a.Err)
	case a.Answered || a.Moved:
		p.answered, p.failing, p.refused = true, time.Time{}, time.Time{}
	case p.failing.IsZero():
		p.failing = time.Now()
	case time.Since(p.failing) > Limit:
		return 0, p.unavailable(a.Err)
	}
	if a.Moved {
		p.last = 0
	}
	p.last = min(max(a.First, 2*p.last), longest)
	if seconds, asked := apierrors.SuggestsClientDelay(a.Err); asked {
		return max(p.last, min(time.Duration(seconds)*time.Second, patience)), nil
	}
	return p.last, nil
}

// passing reports whether a refusal may pass: an API server that has just been started
// knows no Roles yet for a moment, and refuses what it allowed before.
func (p *Pauses) passing() bool {
	if p.refused.IsZero() {
		p.refused = time.Now()
	}
	return p.answered && time.Since(p.refused) < roleLimit
}

func (p *Pauses) unavailable(err error) error {
	if apierrors.IsUnauthorized(err) {
		return workload.Errorf(workload.Unavailable, "runner_credential_rejected",
			"the API server does not accept the runner's credential").Because(err)
	}
	return workload.Errorf(workload.Unavailable, "kubernetes_unavailable",
		"the runner cannot %s: the API server or the kubelet has failed for %s", p.What, Limit).Because(err).Retry(retryLater)
}

// Wait waits for a time, unless wake, which may be nil, wakes it. If ctx ends, it
// returns its cause.
func Wait(ctx context.Context, pause time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wake:
	case <-timer.C:
	}
	return nil
}
