package reporter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Enrolment is what the platform answers to one.
type Enrolment struct {
	// Identity is the overlay's, as JSON. Secret.
	Identity []byte
	// Service is the name under which the runner is to be found on the overlay.
	Service string
	// IdentityID names the identity.
	IdentityID string
}

// RunnerID is the id that callers know the runner by, which is the end of the name
// of its service, or "" if that is not of this form.
func (e *Enrolment) RunnerID() string {
	id, ok := strings.CutPrefix(e.Service, "runner-")
	if !ok {
		return ""
	}
	return id
}

// ErrNoEnrolment: the platform is older than the enrolment of runners.
var ErrNoEnrolment = errors.New("this platform enrols no runners")

// Enrol exchanges the service token for an enrolment, and tries for as long as limit
// says unless the platform refuses the token. A platform that is too old for it is
// ErrNoEnrolment.
func (g *Gateway) Enrol(ctx context.Context, limit time.Duration, log *logrus.Logger) (*Enrolment, error) {
	var out *Enrolment
	err := insist(ctx, limit, log, "enrolling with the platform", func(ctx context.Context) error {
		answer, err := g.enrol(ctx)
		if err != nil {
			return err
		}
		out = &Enrolment{Identity: answer.GetIdentityJson(), Service: answer.GetServiceName(), IdentityID: answer.GetIdentityId()}
		return nil
	})
	var f *failure
	switch {
	case errors.As(err, &f) && f.verdict == tooOld:
		return nil, ErrNoEnrolment
	case errors.As(err, &f) && f.denied:
		return nil, fmt.Errorf("the platform refuses the service token (gateway.service_token, environment SERVICE_TOKEN): %w", err)
	}
	return out, err
}

// insist calls the platform until it answers, refuses, or limit is over. It says so
// once if that takes more than one attempt.
func insist(ctx context.Context, limit time.Duration, log *logrus.Logger, doing string, call func(context.Context) error) error {
	begin := time.Now()
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(bounded, callLimit)
		err := call(attempt)
		cancel()
		var f *failure
		if err == nil || errors.As(err, &f) && (f.denied || f.verdict == tooOld) {
			return err
		}
		if pause == firstPause {
			log.WithError(err).WithField("limit", limit.String()).Warn(doing + ": no answer yet")
		}
		select {
		case <-bounded.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: no answer for %s: %w", doing, time.Since(begin).Round(time.Second), err)
		case <-time.After(jittered(pause)):
		}
	}
}

// jittered is pause, give or take a fifth: runners that lost the same gateway do not
// come back as one.
func jittered(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // it hides nothing
}
