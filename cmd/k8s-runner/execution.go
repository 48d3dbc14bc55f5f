package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/rpc"
)

const (
	// endLimit bounds the wait for a command that is being cancelled. A runner needs no
	// more than two seconds.
	endLimit = 5 * time.Second
	// sameInterrupt is how soon a second signal still belongs to the first: timeout(1)
	// sends one to a process and another one to its group.
	sameInterrupt = 300 * time.Millisecond
)

// execution is a command in a container, as its caller has it.
type execution struct {
	client client
	start  *runnerv1.ExecStartRequest
	// stdin is nil for a command that gets no input.
	stdin          io.Reader
	stdout, stderr io.Writer
	// raw has the terminal pass on every key, until restore is called; size returns
	// its size, nil if there is none, and resized tells of each change.
	raw     func() (restore func(), err error)
	size    func() *runnerv1.ExecResize
	resized <-chan os.Signal
	// interrupts are wishes to end: the first cancels the command, the second leaves
	// it alone.
	interrupts <-chan os.Signal

	stream runnerv1.RunnerService_ExecClient
	// sending is held by who sends.
	sending sync.Mutex
	// id is the command's once started is closed; prepared is closed when the terminal
	// is ready for it.
	id                string
	started, prepared chan struct{}
	// cancel, which may be called again, closes cancelled.
	cancel    func()
	cancelled chan struct{}
	// mu guards failure, the first fault on this side.
	mu      sync.Mutex
	failure error
}

// ending is how a call ended.
type ending struct {
	exit *runnerv1.ExecExit
	// refused says why the command was not begun.
	refused *runnerv1.ExecError
	// err is that of a call that broke.
	err error
	// left is true if this side did not wait for the end.
	left bool
	// cause is why there is an exit, as far as the runner has told.
	cause string
}

// run runs the command to its end. Its error, if any, is a *commandError.
func (x *execution) run(ctx context.Context) error {
	x.started, x.prepared, x.cancelled = make(chan struct{}), make(chan struct{}), make(chan struct{})
	x.cancel = sync.OnceFunc(func() { close(x.cancelled) })
	ctx, leave := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer leave()
	helpers.Go(func() { x.obeyInterrupts(ctx, leave) })
	helpers.Go(func() { x.cancelInTime(ctx, leave) })
	stream, err := x.client.Exec(ctx)
	if err != nil {
		return x.outcome(ending{err: err, left: ctx.Err() != nil})
	}
	x.stream = stream
	// Of a message that cannot be sent, receive sees why.
	_ = x.send(&runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Start{Start: x.start}})
	x.sendSize()
	helpers.Go(func() { x.passSizes(ctx) })
	// A write to somebody who does not read has no end, so nobody can wait for it.
	received := make(chan ending, 1)
	go func() { received <- x.receive() }()
	end, over := await(ctx, received, x.started)
	if over {
		return x.outcome(end)
	}
	// Until here Ctrl-C is one, and no input is lost.
	restore, err := x.raw()
	if err != nil {
		x.fail("preparing the terminal", err)
	}
	defer restore()
	close(x.prepared)
	go x.sendInput() // nor has a read of a keyboard
	end, _ = await(ctx, received, nil)
	return x.outcome(end)
}

// await waits for the end of the call, but no longer than until started is closed.
func await(ctx context.Context, received <-chan ending, started <-chan struct{}) (end ending, over bool) {
	select {
	case end = <-received:
		return end, true
	case <-ctx.Done():
		return ending{left: true}, true
	case <-started:
		return ending{}, false
	}
}

// receive passes on what comes until the call ends.
func (x *execution) receive() (end ending) {
	for {
		event, err := x.stream.Recv()
		if errors.Is(err, io.EOF) || err != nil && end.exit != nil {
			end.cause = strings.Join(x.stream.Trailer().Get(rpc.ExitCauseTrailer), " ")
			return end
		}
		if err != nil {
			end.err = err
			return end
		}
		switch e := event.GetEvent().(type) {
		case *runnerv1.ExecResponse_Started:
			x.begin(e.Started.GetExecutionId())
		case *runnerv1.ExecResponse_Stdout:
			x.write(x.stdout, e.Stdout.GetData())
		case *runnerv1.ExecResponse_Stderr:
			x.write(x.stderr, e.Stderr.GetData())
		case *runnerv1.ExecResponse_Exit:
			end.exit = e.Exit
		case *runnerv1.ExecResponse_Error:
			end.refused = e.Error
		}
	}
}

// begin tells that the command runs, and waits until the terminal is ready.
func (x *execution) begin(id string) {
	if x.hasStarted() {
		return
	}
	x.id = id
	close(x.started)
	select {
	case <-x.prepared:
	case <-x.stream.Context().Done():
	}
}

func (x *execution) hasStarted() bool {
	select {
	case <-x.started:
		return true
	default:
		return false
	}
}

// write passes on output. After a fault it drops it, until the command has ended.
func (x *execution) write(to io.Writer, data []byte) {
	if x.fault() != nil {
		return
	}
	if _, err := to.Write(data); err != nil {
		x.fail("writing the output", err)
	}
}

// fail has the command cancelled because of a fault on this side.
func (x *execution) fail(doing string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failure == nil {
		x.failure = fmt.Errorf("%s: %w", doing, err)
	}
	x.cancel()
}

func (x *execution) fault() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failure
}

// obeyInterrupts cancels the command and, if asked again, leaves it.
func (x *execution) obeyInterrupts(ctx context.Context, leave func()) {
	var first time.Time
	for {
		select {
		case <-x.interrupts:
		case <-ctx.Done():
			return
		}
		switch {
		case first.IsZero():
			first = time.Now()
			x.cancel()
		case time.Since(first) > sameInterrupt:
			leave()
			return
		}
	}
}

// cancelInTime has the runner kill the command when it is cancelled. If there is
// nothing to kill yet, or it goes on, it is left.
func (x *execution) cancelInTime(ctx context.Context, leave func()) {
	defer leave()
	select {
	case <-x.cancelled:
	case <-ctx.Done():
		return
	}
	if !x.hasStarted() {
		return
	}
	ctx, stop := context.WithTimeout(ctx, endLimit)
	defer stop()
	// Whatever it answers, receive sees the end.
	_, _ = x.client.CancelExecution(ctx, &runnerv1.CancelExecutionRequest{ExecutionId: x.id, Force: true})
	<-ctx.Done()
}
