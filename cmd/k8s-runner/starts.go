package main

import (
	"context"
	"time"

	"github.com/agynio/k8s-runner/metrics"
	"github.com/agynio/k8s-runner/rpc"
	"github.com/agynio/k8s-runner/tracing"
)

// starts measures the starts of workloads, and makes a span of each phase.
type starts struct {
	meter  *metrics.Starts
	traces *tracing.Traces
}

// Phase is rpc's and applier's.
func (s starts) Phase(ctx context.Context, name string) (context.Context, func(error)) {
	begin := time.Now()
	ctx, end := s.traces.Span(ctx, name)
	return ctx, func(err error) {
		s.meter.Phase(name, time.Since(begin))
		end(rpc.Token(err))
	}
}

// Started is rpc's and applier's.
func (s starts) Started(repeated bool, err error) {
	if err != nil {
		s.meter.Failed(rpc.Token(err))
		return
	}
	s.meter.Started(repeated)
}
