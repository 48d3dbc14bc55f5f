package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/agynio/k8s-runner/workload"
)

// When to try again.
const (
	retryStreams  = 10 * time.Second
	retryShutdown = time.Second
)

// streams are the calls that last. It bounds how many there are of one workload,
// and ends them when the service ends, which waits for all calls.
type streams struct {
	// limit is that of each workload; 0 means none.
	limit int

	mu      sync.Mutex
	of      map[string]int
	cancels map[int]context.CancelCauseFunc
	next    int
	ended   bool
}

func newStreams(limit int) *streams {
	return &streams{limit: limit, of: map[string]int{}, cancels: map[int]context.CancelCauseFunc{}}
}

// enter begins a stream of workload id, which ends with leave. Its context is
// cancelled, and has the cause, when the service ends.
func (s *streams) enter(ctx context.Context, id string) (_ context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, nil, shuttingDown()
	case s.limit > 0 && s.of[id] >= s.limit:
		return nil, nil, workload.Errorf(workload.ResourceExhausted, "too_many_streams",
			"there are %d streams already, the limit of one workload", s.limit).Retry(retryStreams)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	number := s.next
	s.next++
	s.of[id]++
	s.cancels[number] = cancel
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, number)
		if s.of[id]--; s.of[id] == 0 {
			delete(s.of, id)
		}
	}, nil
}

// end ends all streams, and lets none begin.
func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, cancel := range s.cancels {
		cancel(shuttingDown())
	}
}

func shuttingDown() *workload.Error {
	return workload.Errorf(workload.Unavailable, "shutting_down", "this runner is ending; another one answers soon").Retry(retryShutdown)
}
