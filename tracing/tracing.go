// Package tracing makes spans of the runner's calls and of the phases of a start,
// and sends them to an OTLP collector, if there is one.
package tracing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"
)

const (
	// name is that of the service, unless OTEL_SERVICE_NAME has another, and of
	// what makes the spans.
	name = "k8s-runner"
	// exportLimit bounds each sending, however often it is tried. flushLimit, which
	// bounds the last one, is longer, so that nobody goes on with it.
	exportLimit = 3 * time.Second
	flushLimit  = 6 * time.Second
)

// Traces makes spans. Nil makes none, and costs nothing.
type Traces struct {
	provider *trace.TracerProvider
	tracer   api.Tracer
}

// New returns Traces that are sent to endpoint, the URL of an OTLP collector's
// gRPC; without one there are none. What else the exporter needs, such as headers
// or a sampler, is in OpenTelemetry's own variables (OTEL_…). It connects when
// there is something to send; what cannot be sent is lost, with a line in the log.
func New(ctx context.Context, endpoint string, log *logrus.Logger) (*Traces, error) {
	if endpoint == "" {
		return nil, nil
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint), otlptracegrpc.WithTimeout(exportLimit))
	if err != nil {
		return nil, fmt.Errorf("making the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(serviceName(name)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("reading what is said of traces in the environment: %w", err)
	}
	return of(trace.WithBatcher(&teller{SpanExporter: exporter, log: log}), trace.WithResource(about)), nil
}

func of(options ...trace.TracerProviderOption) *Traces {
	provider := trace.NewTracerProvider(options...)
	return &Traces{provider: provider, tracer: provider.Tracer(name)}
}

// Calls makes a span of each call to a gRPC server, which belongs to the span of
// the caller if he has one. Health checks and reflection have none. It is nil if
// there are no traces.
func (t *Traces) Calls() stats.Handler {
	if t == nil {
		return nil
	}
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(func(call *stats.RPCTagInfo) bool { return !strings.HasPrefix(call.FullMethodName, "/grpc.") }),
	)
}

// Span begins a span within that of ctx. end ends it; fault is empty or the token
// of an error: more than that a span never says of one.
func (t *Traces) Span(ctx context.Context, name string) (inner context.Context, end func(fault string)) {
	if t == nil {
		return ctx, func(string) {}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, func(fault string) {
		if fault != "" {
			span.SetStatus(codes.Error, fault)
		}
		span.End()
	}
}

// Close sends what is left, within a bound.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last traces: %w", err)
	}
	return nil
}
