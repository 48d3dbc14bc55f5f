package logs

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/agynio/k8s-runner/cluster/again"
	"github.com/agynio/k8s-runner/workload"
)

// stream is one call of Stream.
type stream struct {
	followed, once clientv1.PodInterface

	watch *watcher
	req   *workload.LogRequest
	send  func(workload.LogPiece) error

	memory *memory
	// open is how much was sent of the last line, if that was not all of it.
	open int
	// run is the run of the container whose log it is, once it is being read.
	run *int32
	// turn is a line with which the times went back; see isTurn.
	turn *entry
	// joins is the time up to which a line follows the last one, with none missing
	// between, though that is not in its file.
	joins atomic.Int64
	// next is a line whose first piece is being sent.
	next *entry
	// probed is what the last probe found at the end of the log.
	probed *entry
	// answered and moved are true if in this attempt an answer has begun, and if lines
	// were sent.
	answered, moved bool
}

var (
	errNotBegun = errors.New("the container has not started")
	// errEnded is not an error unless the container still runs.
	errEnded = errors.New("the answer has ended")
	errMore  = errors.New("the log goes on after the end of the answer")
	// errFrozen is that the log goes on and the answer stands still: it has come to the
	// end of a file that was rotated away.
	errFrozen = errors.New("the answer stands still")
	// errMute is that the container has ended, and the answer has not.
	errMute   = errors.New("the answer does not end")
	errTurned = errors.New("the times of the lines go back")
)

// all reads the log, again and again if it must, until all of it is there.
func (s *stream) all(ctx context.Context) error {
	pauses := &again.Pauses{What: "read logs"}
	for {
		s.answered, s.moved = false, false
		done, err := s.round(ctx)
		var domain *workload.Error
		var unsent again.Unsent
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case done, errors.As(err, &domain), errors.As(err, &unsent):
			return err
		}
		if err := s.pause(ctx, pauses, err); err != nil {
			return err
		}
	}
}

// How long the first pause is.
const (
	// endPause leaves the kubelet time to report the end of a container.
	endPause = 250 * time.Millisecond
	// pollPause is all there is of following where the kubelet cannot.
	pollPause = time.Second
)

// pause waits after an attempt that ended with err. A change of the container ends
// the wait.
func (s *stream) pause(ctx context.Context, pauses *again.Pauses, err error) error {
	attempt := again.Attempt{Err: err, Answered: s.answered && !errors.Is(err, errNoTime), Moved: s.moved, First: again.AtOnce}
	switch {
	case errors.Is(err, errNotBegun):
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.watch.changed:
			return nil
		}
	case errors.Is(err, errFrozen), errors.Is(err, errMute), errors.Is(err, errTurned):
		return nil
	case errors.Is(err, errEnded):
		attempt.First = endPause
	case errors.Is(err, errNoFollow):
		attempt.First = pollPause
	}
	length, err := pauses.After(attempt)
	if err != nil {
		return err
	}
	return again.Wait(ctx, length, s.watch.changed)
}

// round reads once what there is. It is done if nothing more can come.
func (s *stream) round(ctx context.Context) (done bool, err error) {
	now, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	if !now.begun {
		if s.req.Follow && !now.over {
			return false, errNotBegun
		}
		return true, s.ending(now) // it has written nothing, and maybe never will
	}
	if s.run == nil {
		s.run = &now.restarts
	}
	switch now.restarts - *s.run {
	case 0:
	case 1:
		now = view{begun: true, over: true, previous: true}
	default:
		return false, lost(s.req.Target, "the container was restarted twice meanwhile")
	}
	if err := s.read(ctx, s.options(now), !now.over && s.req.Follow); err != nil {
		return false, err
	}
	return s.conclude(ctx, now)
}

// options are those of the next request: what was asked for, or all since the
// last line that was sent.
func (s *stream) options(now view) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{
		Container: s.req.Target.Container, Timestamps: true,
		// What is over needs no following, which costs the node an inotify instance.
		Follow: s.req.Follow && !now.over, Previous: now.previous,
	}
	since := s.req.Since
	if s.memory.empty() {
		o.TailLines = s.req.Tail
	} else if back := s.from(); back.After(since) {
		since = back
	}
	if since.Unix() > 0 {
		o.SinceTime = &metav1.Time{Time: since} // which goes over the wire in whole seconds
	}
	return o
}

// from is when to read on after the lines that were sent.
func (s *stream) from() time.Time {
	at := s.memory.last.at
	if s.turn != nil {
		at = min(at, s.turn.at)
	}
	return time.Unix(0, at).Add(-slack)
}

// conclude tells whether the log is complete after an answer that ended well. An
// answer does so also if the kubelet dies on the way, so that the end of a log
// that can have one is looked at.
func (s *stream) conclude(ctx context.Context, now view) (done bool, err error) {
	if s.req.Follow && !now.over {
		return false, errEnded // it is final only if it was over when it was asked for
	}
	if now.over {
		switch last, err := s.probe(ctx, now.previous); {
		case err != nil:
			return false, err
		case last == endNew:
			return false, errMore
		}
	}
	return true, s.ending(now)
}

// ending is how a stream ends of which all was sent.
func (s *stream) ending(now view) error {
	switch {
	case s.turn != nil:
		return s.lostByTurn()
	case s.req.Follow && now.over && now.killed:
		return deleted(s.req.Target)
	}
	return nil
}

// end is what stands at the end of a log.
type end int

const (
	// endKnown is a line that was sent; endNew is another one.
	endKnown end = iota
	endNew
	// endEmpty is that there is no line: the log has just been rotated.
	endEmpty
)

// probe looks at the end of the log.
func (s *stream) probe(ctx context.Context, previous bool) (end, error) {
	one := int64(1)
	body, err := s.request(ctx, &corev1.PodLogOptions{
		Container: s.req.Target.Container, Timestamps: true, TailLines: &one, Previous: previous,
	})
	if err != nil {
		return endKnown, err
	}
	defer body.Close() //nolint:errcheck // it was read
	p, err := newLines(body, false).next()
	if ended(err) {
		return endEmpty, nil
	}
	if err != nil {
		return endKnown, err
	}
	// The end of a very long line is a line of its own here, and is not known.
	found := s.memory.entry(p)
	again := s.probed != nil && *s.probed == found
	s.probed = &found
	if again || s.memory.has(found) {
		return endKnown, nil
	}
	return endNew, nil
}
