package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Templates measures what becomes of an operator's edits.
type Templates struct {
	edits    *prometheus.CounterVec
	rejected prometheus.Gauge
	loaded   prometheus.Gauge
}

// Values of the label result.
const (
	resultLoaded   = "loaded"
	resultRejected = "rejected"
)

func newTemplates() *Templates {
	t := &Templates{
		edits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: "templates", Name: "edits_total",
			Help: "Sets of an operator's ConfigMaps that were tried, by result; the first one is that of the start.",
		}, []string{"result"}),
		rejected: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: "templates", Name: "rejected",
			Help: "1 while the ConfigMaps as they are now are refused, else 0.",
		}),
		loaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: "templates", Name: "loaded_timestamp_seconds",
			Help: "When the set of templates that is served was loaded, in seconds since 1970; 0 if none was good since the start.",
		}),
	}
	// A rate needs a zero to start from.
	t.edits.WithLabelValues(resultLoaded)
	t.edits.WithLabelValues(resultRejected)
	return t
}

func (t *Templates) all() []prometheus.Collector {
	return []prometheus.Collector{t.edits, t.rejected, t.loaded}
}

// TemplatesLoaded counts an edit that is served from now on.
func (t *Templates) TemplatesLoaded(at time.Time) {
	t.edits.WithLabelValues(resultLoaded).Inc()
	t.rejected.Set(0)
	t.loaded.Set(float64(at.UnixMilli()) / 1000)
}

// TemplatesRejected counts an edit that does not count.
func (t *Templates) TemplatesRejected() {
	t.edits.WithLabelValues(resultRejected).Inc()
	t.rejected.Set(1)
}
