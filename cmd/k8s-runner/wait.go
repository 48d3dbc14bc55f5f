package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// pollEvery is how often wait asks. The runner answers from memory.
const pollEvery = 250 * time.Millisecond

// waitFlags are the flags of run about waiting for the start.
type waitFlags struct {
	wanted, quiet bool
	limit         time.Duration
}

func (w *waitFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&w.wanted, "wait", false, "wait until the main container runs or has ended")
	flags.DurationVar(&w.limit, "wait-timeout", 5*time.Minute, "longest time for --wait, and for a start with -i, -t or --rm; 0: no limit")
	flags.BoolVarP(&w.quiet, "quiet", "q", false, "print only the id, or what the command writes, and no progress")
}

// told is where progress goes.
func (w *waitFlags) told(cmd *cobra.Command) io.Writer {
	if w.quiet {
		return io.Discard
	}
	return cmd.ErrOrStderr()
}

// wait returns once the main container of workload id runs or has ended, with
// an error if it failed or if limit passed, unless that is 0. It writes a line
// to progress for each change.
func (c client) wait(ctx context.Context, id string, limit time.Duration, progress io.Writer) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last := summary{}
	for line := ""; ; {
		w, err := c.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{WorkloadId: id})
		if err != nil && ctx.Err() == nil && !endsNow(ctx, err) {
			return fmt.Errorf("waiting for workload %s: %w", id, err)
		}
		if err == nil {
			last = summary{w}
			now, done := stage(last)
			if now != line {
				_, _ = fmt.Fprintln(progress, now) // a lost line is no reason to stop
			}
			line = now
			if done {
				return outcome(last)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("workload %s does not run yet, its status is %s: %w", id, last.status(), ctx.Err())
		}
	}
}

// endsNow reports whether err says that ctx is at its end, which gRPC may tell a
// moment before ctx does.
func endsNow(ctx context.Context, err error) bool {
	deadline, ok := ctx.Deadline()
	return ok && status.Code(err) == codes.DeadlineExceeded && time.Until(deadline) < pollEvery
}

// stage is how far a start is, and whether that is far enough.
func stage(s summary) (line string, done bool) {
	switch {
	case s.ended():
		return "ENDED     " + s.status(), true
	case s.running():
		return "RUNNING", true
	}
	return "STARTING  " + s.waits(), false
}

var errFailed = errors.New("failed")

// outcome is an error if the workload ended and failed.
func outcome(s summary) error {
	if !s.ended() || s.succeeded() {
		return nil
	}
	return fmt.Errorf("workload %s %w: %s", s.GetId(), errFailed, s.status())
}
