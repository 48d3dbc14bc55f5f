package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestReports(t *testing.T) {
	m := newMetrics(t)
	m.Reports.Reported("sent")
	m.Reports.Answers(true)
	m.Reports.Enrolled(errors.New("no"))
	if n := testutil.CollectAndCount(m.Reports); n != 0 {
		t.Errorf("without a platform %d things wait to be told", n)
	}
	m.Reports.Waiting(func() (int, time.Time) { return 3, time.Now().Add(-time.Hour) })
	want := `# HELP k8s_runner_state_reports_unsent Workloads whose newest state the platform was not told yet.
# TYPE k8s_runner_state_reports_unsent gauge
k8s_runner_state_reports_unsent 3
`
	if err := testutil.CollectAndCompare(m.Reports, strings.NewReader(want), "k8s_runner_state_reports_unsent"); err != nil {
		t.Error(err)
	}
	for name, got := range map[string]float64{
		"sent": testutil.ToFloat64(m.Reports.total.WithLabelValues("sent")), "up": testutil.ToFloat64(m.Reports.up),
		"failed": testutil.ToFloat64(m.Reports.enrols.WithLabelValues("failed")),
	} {
		if got != 1 {
			t.Errorf("%s is %v", name, got)
		}
	}
	m.Reports.Answers(false)
	if up := testutil.ToFloat64(m.Reports.up); up != 0 {
		t.Errorf("up is %v", up)
	}
}
