package main

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Exit codes of the commands that run another one in a container, beside its own:
// those of docker, of timeout(1) and of shells.
const (
	exitTimedOut    = 124
	exitNotRun      = 125
	exitInterrupted = 130
	exitBrokenPipe  = 141
)

// commandError is the end of a command in a container, with the exit code that it
// has the process give.
type commandError struct {
	code int
	// err says why; nil if the code is the command's own, of which there is nothing
	// to say.
	err error
}

func (e *commandError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *commandError) Unwrap() error { return e.err }

// ofCommand gives err, an error of a command line that runs a command in a
// container, an exit code that a command's own is not likely to be.
func ofCommand(err error) error {
	switch {
	case err == nil, errors.As(err, new(*usageError)), errors.As(err, new(*commandError)):
		return err
	case errors.Is(err, context.Canceled), status.Code(err) == codes.Canceled:
		return &commandError{code: exitInterrupted, err: err}
	}
	return &commandError{code: exitNotRun, err: err}
}
