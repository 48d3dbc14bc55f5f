package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/agynio/k8s-runner/cluster/again"
	"github.com/agynio/k8s-runner/workload"
)

// read sends what a request brings and was not sent before. follows tells that
// the answer ends only with the container.
func (s *stream) read(ctx context.Context, opts *corev1.PodLogOptions, follows bool) error {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	body, err := s.request(ctx, opts)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was read
	s.answered = true
	s.memory.reread()
	in := &pulse{in: body}
	if follows {
		guarded := make(chan struct{})
		go func() {
			defer close(guarded)
			(&guard{s: s, in: in, cut: cut}).watch(ctx)
		}()
		defer func() {
			cut(nil)
			<-guarded
		}()
	}
	err = s.copy(newLines(in, opts.SinceTime != nil), follows)
	if cause := context.Cause(ctx); errors.Is(cause, errFrozen) || errors.Is(cause, errMute) {
		return cause
	}
	return err
}

// copy sends the pieces of the lines that are new. The last line is left out if
// it has not ended and the log is to go on: it will be read again.
func (s *stream) copy(lines *lines, goesOn bool) error {
	var left bool // the line that is being read is left out
	var skip int  // bytes of it that were sent
	for {
		p, err := lines.next()
		if ended(err) || err == nil && p.cut && goesOn {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		if p.first {
			if left, skip, err = s.consider(p); err != nil {
				return err
			}
		}
		if left {
			continue
		}
		done := min(skip, len(p.data))
		skip -= done
		if err := s.sendPiece(p, p.data[done:]); err != nil {
			return err
		}
	}
}

// consider tells of a line, by its first piece, whether it is left out, or how
// many bytes of it were sent already.
func (s *stream) consider(p piece) (left bool, skip int, err error) {
	if p.at.Before(s.req.Since) {
		return true, 0, nil
	}
	e := s.memory.entry(p)
	switch s.memory.judge(e) {
	case isKnown:
		return true, 0, nil
	case isLast:
		s.joins.Store(0)
		return s.open == 0, s.open, nil
	case isBeyond:
		if e.at > s.joins.Load() {
			return false, 0, lost(s.req.Target, "it was rotated while there was no connection")
		}
	case isNew:
	}
	if err := s.isTurn(e); err != nil {
		return false, 0, err
	}
	s.open = 0
	s.next = &e
	return false, 0, nil
}

// isTurn looks at a new line with which the times go back. Either the node's
// clock was set back; or the kubelet reads a file for the second time, which it
// does if the log was rotated twice before it came to it, and then a whole file is
// lost. If the line stands behind the last one when the log is read again, it was
// the clock.
func (s *stream) isTurn(e entry) error {
	back := !s.memory.empty() && e.at < s.memory.last.at-int64(slack)
	switch {
	case back && s.turn == nil:
		s.turn = &e
		return errTurned
	case s.turn != nil && *s.turn != e:
		return s.lostByTurn()
	}
	s.turn = nil
	return nil
}

func (s *stream) lostByTurn() error {
	return lost(s.req.Target, "the container wrote faster than they were read, and its log was rotated twice meanwhile")
}

// sendPiece sends data, a part or the whole of p.
func (s *stream) sendPiece(p piece, data []byte) error {
	if len(data) > 0 {
		if err := s.send(workload.LogPiece{Data: data, At: p.at}); err != nil {
			return again.Unsent{Err: err}
		}
		s.moved = true
	}
	if s.next != nil {
		s.memory.sent(*s.next)
		s.next = nil
		s.joins.Store(0)
	}
	s.open += len(data)
	if p.last {
		s.open = 0
	}
	return nil
}

// request begins to read a log.
func (s *stream) request(ctx context.Context, opts *corev1.PodLogOptions) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(answerLimit, cancel)
	pods := s.once
	if opts.Follow {
		pods = s.followed
	}
	body, err := pods.GetLogs(workload.PodName(s.req.Target.ID), opts).MaxRetries(0).Stream(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("asking for the log: %w", err)
	}
	late.Stop()
	return &answer{ReadCloser: body, cancel: cancel}, nil
}

// answer is the body of an answer with what ends its request.
type answer struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the request.
func (a *answer) Close() error {
	a.cancel()
	return a.ReadCloser.Close()
}

// ended reports whether an answer has ended as it should.
func ended(err error) bool { return errors.Is(err, io.EOF) }
