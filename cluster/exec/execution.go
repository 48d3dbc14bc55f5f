package exec

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agynio/k8s-runner/cluster/again"
	"github.com/agynio/k8s-runner/workload"
)

const (
	// drainLimit and maxLeft, in bytes, bound what is read after it is known how the
	// command ended: the pipes on the way hold no more, but children that it left
	// may write for ever.
	drainLimit = time.Second
	maxLeft    = 512 << 10
	// statusLimit bounds the wait for the status of a process that was killed, or
	// whose Pod goes.
	statusLimit = 500 * time.Millisecond
	// bareLimit is how long a bare command may take to be refused; after that it
	// counts as started.
	bareLimit = 500 * time.Millisecond
	// killed is the exit code of a process that SIGKILL ended.
	killed = 137
)

// execution is a command that runs.
//
// It ends when the status of the process comes, or else when its context ends, with
// an *ending as the cause: by the clock, a caller who cancels or goes, the end of
// the Pod, of the runner. Then interrupt kills if that is asked for, and closes the
// connection.
type execution struct {
	id       string
	executor *Executor
	command  *workload.Command
	session  workload.Session
	end      context.CancelCauseFunc
	// ended is closed when there is nothing left to kill.
	ended chan struct{}

	// input is the first, if it was taken before the connection.
	input *input
	conn  connection
	// bare is true for a command without a wrapper, which cannot be found again, and
	// of which there are no notices.
	bare    bool
	notices *notices
	// code is what the wrapper says that the command ended with; told is closed then.
	code   int32
	told   chan struct{}
	logs   *logCopy
	began  sync.Once
	begun  chan struct{}
	at     time.Time
	saying error

	// active is when something was read or written last, in nanoseconds since 1970;
	// busy is true while the caller takes output.
	active atomic.Int64
	busy   atomic.Bool
	// written counts the bytes of standard input that went out.
	written atomic.Int64
	// podEnds is true once the Pod goes, or the container.
	podEnds atomic.Bool
	// gone is true if the processes were killed, and seen gone.
	gone  bool
	over  chan struct{}
	tails [2]tail
}

func (x *execution) run(ctx context.Context) (*workload.Exit, error) {
	done := sync.OnceFunc(func() { close(x.ended) })
	defer done()
	x.begun, x.over, x.told = make(chan struct{}), make(chan struct{}), make(chan struct{})
	for i := range x.tails {
		x.tails[i].limit = x.command.Tail
	}
	early, err := x.open(ctx)
	if err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer x.conn.close()
	defer x.end(nil)
	undisturbed := context.AfterFunc(ctx, func() {
		x.interrupt(ctx)
		done()
	})
	for _, part := range [...]func(context.Context){x.passStdin, x.passSizes, x.watchPod, x.watchClock} {
		group.Go(func() { part(ctx) })
	}
	code, err := x.read(early)
	close(x.over)
	if !undisturbed() {
		<-x.ended
		if err != nil {
			code = -1
		}
		return x.interrupted(endingOf(ctx, x.command), code), nil
	}
	var refused *refusal
	if errors.As(err, &refused) && !isClosed(x.begun) {
		return nil, notStarted(workload.FailedPrecondition, "%s", refused.message)
	}
	return x.finished(code, err), nil
}

// early is output that came before the reading began.
type early struct {
	from channel
	data []byte
}

// read passes on the output until the process ends, and returns its exit code.
func (x *execution) read(first []early) (int32, error) {
	for _, e := range first {
		if err := x.take(e.from, e.data); err != nil {
			return 0, err
		}
	}
	var status []byte
	left := maxLeft
	for left > 0 {
		from, data, err := x.readOn(json.Valid(status))
		if err == nil && from == channelStatus {
			status = append(status, data...)
			continue
		}
		if isClosed(x.told) {
			left -= len(data)
		}
		if err == nil {
			err = x.take(from, data)
			if err != nil {
				return 0, err
			}
			continue
		}
		if x.notices != nil {
			if err := x.pass(channelStdout, x.notices.rest()); err != nil {
				return 0, err
			}
		}
		switch {
		case json.Valid(status):
			return decodeStatus(status)
		case isClosed(x.told):
			return x.code, nil
		case errors.Is(err, io.EOF):
			return 0, errNoStatus
		}
		return 0, err
	}
	return x.code, nil
}

// readOn reads a piece. Once it is known how the command ended, what children of it
// keep open is waited for no longer than it is quiet.
func (x *execution) readOn(known bool) (channel, []byte, error) {
	if known || isClosed(x.told) {
		timer := time.AfterFunc(drainLimit, x.conn.close)
		defer timer.Stop()
	}
	return x.conn.read()
}

// take takes a piece of what comes, and the notices out of it.
func (x *execution) take(from channel, data []byte) error {
	if from != channelStdout || x.bare {
		return x.pass(from, data)
	}
	for len(data) > 0 {
		before, notice, after := x.notices.next(data)
		if err := x.pass(from, before); err != nil {
			return err
		}
		if code, err := strconv.ParseUint(notice, 10, 8); err == nil && !isClosed(x.told) {
			x.code = int32(code)
			close(x.told)
		}
		data = after
	}
	return nil
}

// begin tells the caller that the command runs, once.
func (x *execution) begin() error {
	x.began.Do(func() {
		x.at = time.Now()
		x.touch()
		x.saying = x.session.Started(x.id, x.at)
		close(x.begun)
	})
	return x.saying
}

// isClosed reports whether what c stands for has happened.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (x *execution) touch() { x.active.Store(time.Now().UnixNano()) }

// pass hands output to the caller.
func (x *execution) pass(from channel, data []byte) error {
	if len(data) == 0 || from != channelStdout && from != channelStderr {
		return nil
	}
	if err := x.begin(); err != nil {
		return x.callerGone(err)
	}
	stream := workload.Stdout
	if from == channelStderr && x.command.Separate && !x.command.TTY {
		stream = workload.Stderr
	}
	x.tails[stream].add(data)
	x.busy.Store(true)
	defer x.busy.Store(false)
	x.logs.copy(stream, data)
	if err := x.session.Output(stream, data); err != nil {
		return x.callerGone(err)
	}
	x.touch()
	return nil
}

func (x *execution) callerGone(err error) error {
	x.end(&ending{reason: workload.Cancelled, kill: x.command.Kill, cause: "the caller went away"})
	return err
}

// interrupt ends the command before its process has ended by itself.
func (x *execution) interrupt(ctx context.Context) {
	cleanUp := context.WithoutCancel(ctx)
	if why := endingOf(ctx, x.command); why.kill && !x.bare {
		x.gone = x.executor.kill(cleanUp, x)
		_ = again.Wait(cleanUp, statusLimit, x.over) // it has no end
	}
	x.conn.close()
	_ = again.Wait(cleanUp, logLimit, x.over) // as above
	if !isClosed(x.over) {
		x.logs.cut()
	}
}

func (x *execution) finished(code int32, err error) *workload.Exit {
	exit := x.exit(workload.Completed, code)
	switch {
	case err != nil:
		exit.Reason, exit.Code, exit.Cause = workload.RunnerError, -1, err.Error()
	case code == killed && x.podEnds.Load():
		exit.Reason, exit.Cause = workload.RunnerError, causePodEnds
	}
	return exit
}

func (x *execution) interrupted(why *ending, code int32) *workload.Exit {
	exit := x.exit(why.reason, code)
	exit.Killed, exit.Cause = x.gone, why.cause
	return exit
}

func (x *execution) exit(reason workload.ExitReason, code int32) *workload.Exit {
	x.logs.close()
	return &workload.Exit{
		ID: x.id, Reason: reason, Code: code, At: time.Now(),
		Stdout: x.tails[workload.Stdout].bytes(), Stderr: x.tails[workload.Stderr].bytes(),
	}
}
