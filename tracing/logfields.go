package tracing

import (
	"github.com/sirupsen/logrus"
	api "go.opentelemetry.io/otel/trace"
)

// LogFields is a hook of the log: it gives each line with the context of a span the
// trace_id, by which the collector finds what else belongs to it.
type LogFields struct{}

// Levels is logrus'.
func (LogFields) Levels() []logrus.Level { return logrus.AllLevels }

// Fire is logrus'.
func (LogFields) Fire(entry *logrus.Entry) error {
	if span := api.SpanContextFromContext(entry.Context); span.HasTraceID() {
		entry.Data["trace_id"] = span.TraceID().String()
	}
	return nil
}
