package tracing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestLogFields: a line within a span has its trace, and others have none.
func TestLogFields(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	traces := of(trace.WithSyncer(kept))
	log, lines := logtest.NewNullLogger()
	log.ReplaceHooks(logrus.LevelHooks{logrus.InfoLevel: {LogFields{}, lines}})
	ctx, end := traces.Span(t.Context(), "outer")
	log.WithContext(ctx).Info("within")
	end("")
	log.WithContext(t.Context()).Info("outside")
	log.Info("without a context")
	var got []logrus.Fields
	for _, line := range lines.AllEntries() {
		got = append(got, line.Data)
	}
	want := []logrus.Fields{{"trace_id": kept.GetSpans()[0].SpanContext.TraceID().String()}, {}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
