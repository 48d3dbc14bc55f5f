package tracing

import (
	"context"

	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
)

func serviceName(name string) attribute.KeyValue { return attribute.String("service.name", name) }

// teller logs that spans are lost, once until some arrive again; the SDK would
// write to standard error each time.
type teller struct {
	trace.SpanExporter
	log *logrus.Logger
	// lost is only used by ExportSpans, whose calls never overlap.
	lost bool
}

// ExportSpans is trace.SpanExporter's.
func (t *teller) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !t.lost {
		t.log.WithError(err).Warn("traces are lost")
	}
	t.lost = err != nil
	return nil
}
