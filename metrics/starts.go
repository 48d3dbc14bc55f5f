package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Starts measures the starts of workloads, and what is left of those that nobody
// finished.
type Starts struct {
	total  *prometheus.CounterVec
	phases *prometheus.HistogramVec
	gated  prometheus.Gauge
	reaped prometheus.Counter
}

// Values of the label result of a start.
const (
	resultOK       = "ok"
	resultRepeated = "repeated"
	resultFailed   = "failed"
)

func newStarts() *Starts {
	s := &Starts{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "starts_total",
			Help: "StartWorkload calls, by result and, of those that failed, the token of the error.",
		}, []string{"result", "reason"}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "start_phase_seconds",
			Help:    "How long the phases of a start took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15), // 1 ms to 16 s
		}, []string{"phase"}),
		gated: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "gated_pods",
			Help: "Pods whose start is unfinished.",
		}),
		reaped: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "reaped_pods_total",
			Help: "Pods that were taken away because nobody finished their start.",
		}),
	}
	// A rate needs a zero to start from.
	s.total.WithLabelValues(resultOK, "")
	s.total.WithLabelValues(resultRepeated, "")
	for _, phase := range []string{"render", "create", "dependents", "claims", "release", "undo"} {
		s.phases.WithLabelValues(phase)
	}
	return s
}

func (s *Starts) all() []prometheus.Collector {
	return []prometheus.Collector{s.total, s.phases, s.gated, s.reaped}
}

// Started counts a start that went well; repeated says that it had been made
// before.
func (s *Starts) Started(repeated bool) {
	result := resultOK
	if repeated {
		result = resultRepeated
	}
	s.total.WithLabelValues(result, "").Inc()
}

// Failed counts a start that did not; reason is one of the tokens of the errors.
func (s *Starts) Failed(reason string) { s.total.WithLabelValues(resultFailed, reason).Inc() }

// Phase measures a phase of a start.
func (s *Starts) Phase(phase string, took time.Duration) {
	s.phases.WithLabelValues(phase).Observe(took.Seconds())
}

// Gated: there are so many Pods whose start is unfinished.
func (s *Starts) Gated(pods int) { s.gated.Set(float64(pods)) }

// Reaped counts one that was taken away.
func (s *Starts) Reaped() { s.reaped.Inc() }
