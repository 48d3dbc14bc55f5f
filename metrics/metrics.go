// Package metrics holds the instruments of the runner, and serves them over HTTP
// together with the probes of the kubelet.
package metrics

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// namespace starts the name of every metric that is the runner's own.
const namespace = "k8s_runner"

// Metrics are the instruments of one runner. Each group goes to the part that
// it measures, which knows it by a small interface of its own.
type Metrics struct {
	Templates *Templates
	Starts    *Starts
	API       *API
	Calls     *Calls
	Reports   *Reports
	Overlay   *Overlay

	registry *prometheus.Registry
}

// New returns instruments that have measured nothing yet.
func New() (*Metrics, error) {
	m := &Metrics{Templates: newTemplates(), Starts: newStarts(), API: newAPI(), Calls: newCalls(), Reports: newReports(), Overlay: newOverlay(), registry: prometheus.NewRegistry()}
	all := []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	for _, c := range slices.Concat(all, m.Calls.all(), m.Templates.all(), m.Starts.all(), m.API.all(), m.Reports.all(), m.Overlay.all()) {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics: %w", err)
		}
	}
	return m, nil
}
