package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// punctual is a runner to whose clock every time-out is over at once.
type punctual struct{ runnerv1.RunnerServiceClient }

func (punctual) InspectWorkload(context.Context, *runnerv1.InspectWorkloadRequest, ...grpc.CallOption) (*runnerv1.InspectWorkloadResponse, error) {
	return nil, called(codes.DeadlineExceeded, "context deadline exceeded")
}

func TestWaitEndsAtItsOwnLimit(t *testing.T) {
	t.Parallel()
	c := client{RunnerServiceClient: punctual{}}
	tests := []struct {
		name  string
		limit time.Duration
		want  string
	}{
		{"the limit of waiting, told early", pollEvery / 2, "workload x does not run yet, its status is Unknown: context deadline exceeded"},
		{"a call that takes too long", time.Hour, "waiting for workload x: no answer from runner:1 within 30s (--timeout)"},
		{"the same without a limit", 0, "waiting for workload x: no answer from runner:1 within 30s (--timeout)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := c.wait(t.Context(), "x", test.limit, io.Discard)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if own := strings.HasPrefix(test.want, "workload"); errors.Is(err, context.DeadlineExceeded) != own {
				t.Errorf("%v is a deadline of ours: %v, want %v", err, !own, own)
			}
		})
	}
}
