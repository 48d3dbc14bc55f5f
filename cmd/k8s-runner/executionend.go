package main

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"
	"time"

	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// outcome makes an error of how the call ended, nil if the command ended well.
func (x *execution) outcome(end ending) error {
	fault := x.fault()
	switch {
	case errors.Is(fault, syscall.EPIPE):
		return &commandError{code: exitBrokenPipe} // as of a program whose reader has enough
	case fault != nil:
		return notRun("%w", fault)
	case end.exit != nil:
		return exited(end.exit, end.cause, x.start.GetOptions())
	case end.refused != nil:
		return refusal(end.refused)
	case end.left && x.hasStarted():
		return &commandError{code: exitInterrupted, err: errors.New("interrupted; the command may still run")}
	case end.left:
		return &commandError{code: exitInterrupted, err: errors.New("interrupted before the command began")}
	case end.err != nil && x.hasStarted():
		return notRun("the call broke while the command ran, and it may still run: %s", printable(status.Convert(end.err).Message()))
	case end.err != nil:
		return ofCommand(end.err)
	}
	return notRun("the runner did not say how the command ended")
}

func notRun(format string, args ...any) error {
	return &commandError{code: exitNotRun, err: fmt.Errorf(format, args...)}
}

func refusal(refused *runnerv1.ExecError) error {
	text := refused.GetCode() + ": " + refused.GetMessage()
	if refused.GetRetryable() {
		text += "; trying again can help"
	}
	return notRun("%s", printable(text))
}

// exited makes an error of the exit of a command, nil if it ended well.
func exited(exit *runnerv1.ExecExit, cause string, options *runnerv1.ExecOptions) error {
	code, text := exitNotRun, cmp.Or(printable(cause), "the runner lost the command")
	fate := "; it may still run, as there was no --kill"
	if options.GetKillOnTimeout() {
		fate = unkilled
	}
	switch exit.GetReason() {
	case runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED:
		if exit.GetExitCode() == 0 {
			return nil
		}
		return &commandError{code: int(exit.GetExitCode())}
	case runnerv1.ExecExitReason_EXEC_EXIT_REASON_TIMEOUT:
		code, text = exitTimedOut, "the command did not end within "+limit(options.GetTimeoutMs())+" (--for)"
	case runnerv1.ExecExitReason_EXEC_EXIT_REASON_IDLE_TIMEOUT:
		code, text = exitTimedOut, "nothing was read or written for "+limit(options.GetIdleTimeoutMs())+" (--idle)"
	case runnerv1.ExecExitReason_EXEC_EXIT_REASON_CANCELLED:
		code, text, fate = exitInterrupted, "the command was cancelled", unkilled
	default: // nobody knows
		fate = ""
	}
	if exit.GetKilled() {
		fate = "; its processes were killed"
	}
	return &commandError{code: code, err: errors.New(text + fate)}
}

const unkilled = "; its processes were not seen gone"

func limit(milliseconds uint64) string {
	return (time.Duration(milliseconds) * time.Millisecond).String() //nolint:gosec // it was a duration
}
