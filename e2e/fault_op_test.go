//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// what a caller asks for.
type what string

const (
	toStart        what = "start"
	toStartAgain   what = "start the same again"
	toStartOther   what = "start another under the id"
	toStop         what = "stop"
	toRemove       what = "remove"
	toRemoveAll    what = "remove with volumes"
	toRemoveVolume what = "remove the volume"
)

// op is one call with its repetitions.
type op struct {
	does    what
	subject *subject
	request *runnerv1.StartWorkloadRequest
	claim   string
	force   bool
	// hasty has the first try end before the runner may be done, givesUp ends after
	// one that failed.
	hasty, givesUp bool

	tries int
	err   error
}

func (o *op) String() string {
	of := o.claim
	if o.subject != nil {
		of = fmt.Sprintf("%s %+v, which is %s", o.subject.id, o.subject.shape, o.subject.state)
	}
	return fmt.Sprintf("%s %s (force %v, hasty %v, gives up %v)", o.does, of, o.force, o.hasty, o.givesUp)
}

const (
	callLimit  = 15 * time.Second
	hastyLimit = 60 * time.Millisecond
	// maxCalls bounds the repetitions of a call: the faults of a plan come to an end
	// long before.
	maxCalls = 60
)

// try makes the call once.
func (o *op) try(ctx context.Context, r *runner) {
	limit := callLimit
	if o.hasty && o.tries == 0 {
		limit = hastyLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o.tries++
	switch o.does {
	case toStart, toStartAgain, toStartOther:
		_, o.err = r.StartWorkload(ctx, o.request)
	case toStop:
		_, o.err = r.StopWorkload(ctx, &runnerv1.StopWorkloadRequest{WorkloadId: o.subject.id})
	case toRemove, toRemoveAll:
		_, o.err = r.RemoveWorkload(ctx, &runnerv1.RemoveWorkloadRequest{WorkloadId: o.subject.id, Force: o.force, RemoveVolumes: o.does == toRemoveAll})
	case toRemoveVolume:
		_, o.err = r.RemoveVolume(ctx, &runnerv1.RemoveVolumeRequest{VolumeName: o.claim, Force: o.force})
	}
}

// again reports whether a caller would make the call once more, and when, a tenth
// of what he is asked to wait.
func (o *op) again() (bool, time.Duration) {
	s := status.Convert(o.err)
	delay := detail[*errdetails.RetryInfo](s).GetRetryDelay().AsDuration()
	switch s.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted:
		return true, max(delay/10, 10*time.Millisecond)
	}
	return delay > 0, delay / 10
}

// learn checks the outcome and notes in the model what it tells. A caller who has
// given up learns nothing.
func (m *model) learn(o *op, gaveUp bool) error {
	switch o.does {
	case toStart, toStartAgain, toStartOther:
		return m.learnStart(o, gaveUp)
	case toRemoveVolume:
		return m.learnClaim(o, gaveUp)
	}
	return m.learnEnd(o, gaveUp)
}

func (m *model) learnStart(o *op, gaveUp bool) error {
	s := o.subject
	switch {
	case o.does == toStartOther:
		if !gaveUp && status.Code(o.err) != codes.AlreadyExists {
			return fmt.Errorf("another request under the id gets %w", orNone(o.err))
		}
		return nil
	case gaveUp && s.state == there: // it is the same again
		return nil
	case gaveUp:
		m.claimsMayBe(s, gone)
		s.state, s.request = unknown, o.request
		return nil
	case s.shape.foreign:
		if token(o.err) != "claim_not_ours" {
			return fmt.Errorf("what is refused gets %w", orNone(o.err))
		}
		s.state = gone
		return nil
	case o.err != nil:
		return o.err
	}
	for _, name := range m.claimsOf(s) {
		claim := m.claims[name]
		switch {
		case claim.state == there, s.state == there: // a start that has been makes no claim
		case s.state == unknown:
			claim.state = unknown
		default:
			claim.state = there
		}
	}
	s.state, s.request = there, o.request
	return nil
}

func (m *model) learnEnd(o *op, gaveUp bool) error {
	s := o.subject
	absent := status.Code(o.err) == codes.NotFound
	switch {
	case gaveUp:
		if o.does == toRemoveAll {
			m.claimsMayBe(s, there)
		}
		if s.state == there {
			s.state = unknown
		}
		return nil
	case o.err != nil && !absent:
		return o.err
	case s.state == there && absent && o.tries == 1:
		return fmt.Errorf("the workload was there, and now: %w", o.err)
	case s.state == gone && !absent:
		return fmt.Errorf("the workload was gone, and the call succeeds")
	case o.does != toRemoveAll:
	case !absent, s.state == there: // an earlier try found it, and ended it
		for _, name := range m.claimsOf(s) {
			*m.claims[name] = claimState{state: gone}
		}
	case s.state == unknown && o.tries > 1:
		m.claimsMayBe(s, there)
	}
	s.state, s.uid = gone, ""
	return nil
}

func (m *model) learnClaim(o *op, gaveUp bool) error {
	claim := m.claims[o.claim]
	switch {
	case !gaveUp && o.err != nil:
		return o.err
	case !gaveUp:
		*claim = claimState{state: gone}
	case claim.state == there:
		*claim = claimState{state: unknown}
	}
	return nil
}

// claimsMayBe notes that the claims of s that are in a state may no longer be.
func (m *model) claimsMayBe(s *subject, now known) {
	for _, name := range m.claimsOf(s) {
		if claim := m.claims[name]; claim.state == now {
			*claim = claimState{state: unknown}
		}
	}
}

// orNone makes an error of none.
func orNone(err error) error {
	if err == nil {
		return fmt.Errorf("no error")
	}
	return err
}
