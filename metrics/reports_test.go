package metrics

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t)
		m.Reports.Reported("sent")
		m.Reports.Answers(true)
		m.Reports.Enrolled(errors.New("no"))
		want := []string{
			"k8s_runner_gateway_up 1", `k8s_runner_enrolments_total{result="failed"} 1`,
			`k8s_runner_state_reports_total{result="dropped"} 0`, `k8s_runner_state_reports_total{result="retried"} 0`,
			`k8s_runner_state_reports_total{result="sent"} 1`, `k8s_runner_state_reports_total{result="suppressed"} 0`,
		}
		tells := func(want []string) {
			t.Helper()
			got := append(append(lines(t, m, "k8s_runner_gateway_"), lines(t, m, "k8s_runner_enrol")...), lines(t, m, "k8s_runner_state_reports_")...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		tells(want)
		m.Reports.Answers(false)
		want[0] = "k8s_runner_gateway_up 0"
		oldest := time.Time{}
		m.Reports.Waiting(func() (int, time.Time) { return 3, oldest })
		tells(append([]string{want[0], want[1], "k8s_runner_state_reports_oldest_seconds 0"}, append(want[2:], "k8s_runner_state_reports_unsent 3")...))
		oldest = time.Now().Add(-time.Minute)
		tells(append([]string{want[0], want[1], "k8s_runner_state_reports_oldest_seconds 60"}, append(want[2:], "k8s_runner_state_reports_unsent 3")...))
	})
}
