package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agynio/k8s-runner/workload"
)

// What the process says by its exit code; newExitCodes tells users.
const (
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitInvalid     = 4
	exitConflict    = 5
	exitUnavailable = 6
)

func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What each exit code means",
		Long: `Exit codes of k8s-runner, for scripts:

  0  done
  1  an error that is none of the below; a workload that --wait saw fail
  2  the command line is wrong
  3  the workload does not exist
  4  the request is invalid, or its file; stderr lists the fields
  5  something stands in the way: another workload has the id, the old Pod is
     still being deleted, the cluster does not admit the Pod, a container cannot
     be written
  6  no answer now: the runner or Kubernetes cannot be reached, a time-out, a
     used-up quota; trying again later can help. Or a stream ended before its time

exec, and run with --interactive, --tty or --rm, end with the exit code of the
command in the container, and else with 2 or

  124  --for or --idle ended the command
  125  the command could not be run, or nobody knows how it ended
  130  the command was interrupted
  141  nobody reads what the command writes

render and templates, but for its status, need no runner; they have 1 for every
failure but a wrong command line, so also for an invalid request.

A command of several workloads goes on after a failure. Its exit code is that of
the failures if they all have the same one, else 1.`,
	}
}

// usageError is a mistake on the command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v\nSee '%s --help'.", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

// usage makes a usage error of err; nil stays nil.
func usage(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return &usageError{command: cmd.CommandPath(), err: err}
}

// report is what a user reads of an error of a command; each of several joined
// errors begins a line.
func report(err error) string {
	var text strings.Builder
	for _, e := range apart(err) {
		if command := new(commandError); errors.As(e, &command) && command.err == nil {
			continue
		}
		fmt.Fprintf(&text, "k8s-runner: %s\n", strings.TrimRight(e.Error(), "\n"))
	}
	return text.String()
}

// exitCode is the exit code for an error of a command. It reads the gRPC codes
// that rpc/errors.go gave. That of a command in a container goes before others.
func exitCode(err error) int {
	var command *commandError
	if errors.As(err, &command) {
		return command.code
	}
	all := apart(err)
	code := exitCodeOfOne(all[0])
	for _, e := range all[1:] {
		if exitCodeOfOne(e) != code {
			return exitError
		}
	}
	return code
}

func exitCodeOfOne(err error) int {
	var wrong *usageError
	var domain *workload.Error
	switch {
	case errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &domain) && domain.Kind == workload.NotFound:
		return exitNotFound
	case errors.As(err, &domain) && domain.Kind == workload.InvalidArgument:
		return exitInvalid
	case errors.Is(err, context.DeadlineExceeded):
		return exitUnavailable
	}
	switch status.Code(err) {
	case codes.NotFound:
		return exitNotFound
	case codes.InvalidArgument, codes.OutOfRange:
		return exitInvalid
	case codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted:
		return exitConflict
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return exitUnavailable
	}
	return exitError
}

// apart returns the errors that errors.Join joined, or err alone.
func apart(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, apart(e)...)
	}
	return all
}
