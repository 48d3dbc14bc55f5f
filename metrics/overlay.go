package metrics

import "github.com/prometheus/client_golang/prometheus"

// Overlay measures how it goes with the overlay that callers come over.
type Overlay struct {
	binds     *prometheus.CounterVec
	refreshes *prometheus.CounterVec
}

func newOverlay() *Overlay {
	o := &Overlay{
		binds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "overlay_binds_total",
			Help: "Attempts to bind the runner's service on the overlay, by result.",
		}, []string{"result"}),
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "overlay_refreshes_total",
			Help: "Questions whether the overlay still accepts the runner's identity, by result.",
		}, []string{"result"}),
	}
	// A rate needs a zero to start from.
	for _, result := range []string{resultOK, "unauthorized", resultFailed} {
		o.binds.WithLabelValues(result)
		o.refreshes.WithLabelValues(result)
	}
	return o
}

func (o *Overlay) all() []prometheus.Collector { return []prometheus.Collector{o.binds, o.refreshes} }

// Bound counts an attempt to bind the service.
func (o *Overlay) Bound(result string) { o.binds.WithLabelValues(result).Inc() }

// Refreshed counts a question whether the identity is accepted.
func (o *Overlay) Refreshed(result string) { o.refreshes.WithLabelValues(result).Inc() }
