package exec

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/agynio/k8s-runner/workload"
)

// stuckAfter is how much standard input, in bytes, the way to a process holds if
// the process reads none: pipes and terminals have 4 to 64 KiB. After more than
// that a resize may stand in line for ever.
const stuckAfter = 4 << 10

// passStdin gives the process what the caller sends. A process that does not read
// holds up only this. What comes after the command has ended is for nobody.
func (x *execution) passStdin(ctx context.Context) {
	if first := x.input; first != nil && first.err != nil {
		return // it has none
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := make(chan struct{})
	defer func() { <-stop }()
	defer cancel()
	go func() {
		defer close(stop)
		select {
		case <-x.told:
			cancel()
		case <-ctx.Done():
		}
	}()
	inLine := false
	for {
		data, err := x.nextInput(ctx)
		if errors.Is(err, io.EOF) || isClosed(x.told) {
			x.endStdin(inLine)
			return
		}
		if err != nil {
			return
		}
		x.touch()
		x.written.Add(int64(len(data)))
		inLine = data[len(data)-1] != '\n'
		if x.conn.write(data) != nil {
			return
		}
	}
}

func (x *execution) nextInput(ctx context.Context) ([]byte, error) {
	if first := x.input; first != nil {
		x.input = nil
		return first.data, nil
	}
	return x.session.Stdin(ctx)
}

// endStdin ends the input of the process. That of a terminal ends with a character,
// as at a keyboard, and one more to end the line before: to close it would end the
// output as well (containerd, internal/cri/io/exec_io.go). If it fails the
// connection broke, which the reader sees.
func (x *execution) endStdin(inLine bool) {
	const endOfTransmission = 4
	switch {
	case !x.command.TTY:
		_ = x.conn.closeWrite()
	case isClosed(x.told):
	case inLine:
		_ = x.conn.write([]byte{endOfTransmission, endOfTransmission})
	default:
		_ = x.conn.write([]byte{endOfTransmission})
	}
}

// passSizes gives the terminal its sizes, the newest first.
func (x *execution) passSizes(ctx context.Context) {
	if !x.command.TTY {
		return
	}
	newest := make(chan workload.Size, 1)
	done := make(chan struct{})
	defer func() { <-done }()
	defer close(newest)
	go func() {
		defer close(done)
		for size := range newest {
			if x.conn.resize(size) != nil {
				return
			}
		}
	}()
	for {
		size, err := x.session.Size(ctx)
		if err != nil {
			return
		}
		select {
		case <-newest: // it is out of date
		default:
		}
		newest <- size
		if x.written.Load() > stuckAfter && !x.bare {
			x.executor.resizeAside(ctx, x, size)
		}
	}
}

// watchClock ends the command when its time is up.
func (x *execution) watchClock(ctx context.Context) {
	if !x.awaitBegin(ctx) {
		return
	}
	var wall <-chan time.Time
	if x.command.Timeout > 0 {
		timer := time.NewTimer(time.Until(x.at.Add(x.command.Timeout)))
		defer timer.Stop()
		wall = timer.C
	}
	idle := time.NewTimer(x.command.Idle)
	defer idle.Stop()
	if x.command.Idle <= 0 {
		idle.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-wall:
			x.end(&ending{reason: workload.TimedOut, kill: x.command.Kill, cause: "its time was up"})
			return
		case <-idle.C:
			left := x.command.Idle - time.Since(time.Unix(0, x.active.Load()))
			if x.busy.Load() { // the caller is slow, the command is not idle
				left = x.command.Idle
			}
			if left <= 0 {
				x.end(&ending{reason: workload.IdledOut, kill: x.command.Kill, cause: "nothing was read or written"})
				return
			}
			idle.Reset(left)
		}
	}
}

// awaitBegin waits until the command has begun. A bare one has if it is not refused.
func (x *execution) awaitBegin(ctx context.Context) bool {
	timer := time.NewTimer(bareLimit)
	defer timer.Stop()
	for {
		select {
		case <-x.begun:
			return true
		case <-x.over:
			return false
		case <-ctx.Done():
			return false
		case <-timer.C:
			if err := x.begin(); err != nil {
				_ = x.callerGone(err)
			}
		}
	}
}
