package rpc

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// maxUnread bounds the standard input, in bytes, that waits for a process which
// does not read. After that the caller waits, too, and its resizes behind it.
const maxUnread = 16 << 20

// execSession is the caller's side of a command. What comes from the caller is
// taken out of the stream at once, so that a resize gets past input that nobody
// reads.
type execSession struct {
	stream runnerv1.RunnerService_ExecServer
	// sent counts the messages of each stream.
	sent [2]uint64

	mu sync.Mutex
	// unread is input for the process, size the newest of its terminal.
	unread [][]byte
	bytes  int
	size   *workload.Size
	// eof is true after the caller's last input, over after its last message.
	eof, over bool
	// changed is closed when one of these changes.
	changed chan struct{}
}

func newExecSession(stream runnerv1.RunnerService_ExecServer) *execSession {
	return &execSession{stream: stream, changed: make(chan struct{})}
}

// receive takes the caller's messages until there are no more, or ctx ends. lost ends
// ctx if the caller is gone, or sends what is not taken: the input is not at its end
// then.
func (x *execSession) receive(ctx context.Context, lost context.CancelCauseFunc) {
	for {
		message, err := x.stream.Recv()
		if errors.Is(err, io.EOF) {
			x.update(func() { x.eof, x.over = true, true })
			return
		}
		if err != nil {
			lost(err)
			return
		}
		x.update(func() { x.take(message) })
		if x.await(ctx, func() bool { return x.bytes <= maxUnread || x.eof }) != nil {
			return
		}
	}
}

func (x *execSession) take(message *runnerv1.ExecRequest) {
	if stdin := message.GetStdin(); stdin != nil && !x.eof {
		if data := stdin.GetData(); len(data) > 0 {
			x.unread = append(x.unread, data)
			x.bytes += len(data)
		}
		x.eof = stdin.GetEof()
	}
	if resize := message.GetResize(); resize.GetCols() > 0 && resize.GetRows() > 0 {
		x.size = &workload.Size{Columns: clamp(resize.GetCols()), Rows: clamp(resize.GetRows())}
	}
}

func clamp(n uint32) uint16 { return uint16(min(n, math.MaxUint16)) }

func (x *execSession) update(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
	close(x.changed)
	x.changed = make(chan struct{})
}

// await waits until ready, which is called under the lock, returns true.
func (x *execSession) await(ctx context.Context, ready func() bool) error {
	for {
		x.mu.Lock()
		done, changed := ready(), x.changed
		x.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Stdin implements workload.Session.
func (x *execSession) Stdin(ctx context.Context) ([]byte, error) {
	var next []byte
	err := x.await(ctx, func() bool {
		if len(x.unread) > 0 {
			next, x.unread = x.unread[0], x.unread[1:]
			return true
		}
		return x.eof
	})
	switch {
	case err != nil:
		return nil, err
	case next == nil:
		return nil, io.EOF
	}
	x.update(func() { x.bytes -= len(next) })
	return next, nil
}

// Size implements workload.Session.
func (x *execSession) Size(ctx context.Context) (workload.Size, error) {
	var size *workload.Size
	err := x.await(ctx, func() bool {
		size, x.size = x.size, nil
		return size != nil || x.over
	})
	switch {
	case err != nil:
		return workload.Size{}, err
	case size == nil:
		return workload.Size{}, io.EOF
	}
	return *size, nil
}
