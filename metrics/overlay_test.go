package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agynio/k8s-runner/overlay"
)

// An Overlay is what an overlay wants to be measured by.
var _ overlay.Meter = (*Overlay)(nil)

// TestOverlay: every result is there from the start.
func TestOverlay(t *testing.T) {
	m := &Metrics{registry: prometheus.NewRegistry()}
	o := newOverlay()
	for _, c := range o.all() {
		m.registry.MustRegister(c)
	}
	o.Bound(overlay.ResultOK)
	o.Bound(overlay.ResultUnauthorized)
	o.Refreshed(overlay.ResultFailed)
	o.Refreshed(overlay.ResultFailed)
	want := []string{
		`k8s_runner_overlay_binds_total{result="failed"} 0`,
		`k8s_runner_overlay_binds_total{result="ok"} 1`,
		`k8s_runner_overlay_binds_total{result="unauthorized"} 1`,
		`k8s_runner_overlay_refreshes_total{result="failed"} 2`,
		`k8s_runner_overlay_refreshes_total{result="ok"} 0`,
		`k8s_runner_overlay_refreshes_total{result="unauthorized"} 0`,
	}
	if diff := cmp.Diff(want, lines(t, m, "k8s_runner_overlay_")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
