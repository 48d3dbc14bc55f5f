package metrics

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// lines returns those of /metrics that start with prefix.
func lines(t *testing.T, m *Metrics, prefix string) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler(nil).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("the code is %d: %s", answer.Code, answer.Body)
	}
	var found []string
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestTemplates(t *testing.T) {
	m := newMetrics(t)
	at := time.UnixMilli(1_700_000_000_500)
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"at first", func() {}, []string{`edits_total{result="loaded"} 0`, `edits_total{result="rejected"} 0`, `loaded_timestamp_seconds 0`, `rejected 0`}},
		{
			"bad at the start", m.Templates.TemplatesRejected,
			[]string{`edits_total{result="loaded"} 0`, `edits_total{result="rejected"} 1`, `loaded_timestamp_seconds 0`, `rejected 1`},
		},
		{
			"mended", func() { m.Templates.TemplatesLoaded(at) },
			[]string{`edits_total{result="loaded"} 1`, `edits_total{result="rejected"} 1`, `loaded_timestamp_seconds 1.7000000005e+09`, `rejected 0`},
		},
		{
			"bad again", m.Templates.TemplatesRejected,
			[]string{`edits_total{result="loaded"} 1`, `edits_total{result="rejected"} 2`, `loaded_timestamp_seconds 1.7000000005e+09`, `rejected 1`},
		},
	} {
		step.do()
		for i := range step.want {
			step.want[i] = "k8s_runner_templates_" + step.want[i]
		}
		if diff := cmp.Diff(step.want, lines(t, m, "k8s_runner_templates_")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestStarts(t *testing.T) {
	m := newMetrics(t)
	m.Starts.Started(false)
	m.Starts.Started(true)
	m.Starts.Started(true)
	m.Starts.Failed("quota_exceeded")
	m.Starts.Phase("create", 3*time.Millisecond)
	m.Starts.Gated(7)
	m.Starts.Reaped()
	for prefix, want := range map[string][]string{
		"k8s_runner_starts_total": {
			`k8s_runner_starts_total{reason="",result="ok"} 1`, `k8s_runner_starts_total{reason="",result="repeated"} 2`,
			`k8s_runner_starts_total{reason="quota_exceeded",result="failed"} 1`,
		},
		`k8s_runner_start_phase_seconds_count{phase="create"}`: {`k8s_runner_start_phase_seconds_count{phase="create"} 1`},
		`k8s_runner_start_phase_seconds_sum{phase="create"}`:   {`k8s_runner_start_phase_seconds_sum{phase="create"} 0.003`},
		`k8s_runner_start_phase_seconds_count{phase="undo"}`:   {`k8s_runner_start_phase_seconds_count{phase="undo"} 0`},
		"k8s_runner_gated":  {"k8s_runner_gated_pods 7"},
		"k8s_runner_reaped": {"k8s_runner_reaped_pods_total 1"},
	} {
		if diff := cmp.Diff(want, lines(t, m, prefix)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t)
		m.API.Asked("create", "pods", "201")
		m.API.Asked("create", "pods", "error")
		m.API.Asked("create", "pods", "error")
		m.API.Took("create", 3*time.Millisecond)
		m.API.Heard("configmaps")
		time.Sleep(time.Second)
		m.API.Heard("pods")
		time.Sleep(2 * time.Second)
		for prefix, want := range map[string][]string{
			"k8s_runner_api_requests": {
				`k8s_runner_api_requests_total{code="201",resource="pods",verb="create"} 1`,
				`k8s_runner_api_requests_total{code="error",resource="pods",verb="create"} 2`,
			},
			"k8s_runner_api_request_seconds_sum": {`k8s_runner_api_request_seconds_sum{verb="create"} 0.003`},
			"k8s_runner_cache_age_seconds":       {`k8s_runner_cache_age_seconds{cache="configmaps"} 3`, `k8s_runner_cache_age_seconds{cache="pods"} 2`},
		} {
			if diff := cmp.Diff(want, lines(t, m, prefix)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

// TestProcess: the metrics of Go and of the process are there, of each runner its
// own.
func TestProcess(t *testing.T) {
	newMetrics(t).Templates.TemplatesRejected()
	m := newMetrics(t)
	for _, name := range []string{"go_goroutines ", "process_resident_memory_bytes ", "process_open_fds "} {
		if got := lines(t, m, name); len(got) != 1 {
			t.Errorf("of %s there is %v", name, got)
		}
	}
	if got := lines(t, m, `k8s_runner_templates_edits_total{result="rejected"}`); len(got) != 1 || !strings.HasSuffix(got[0], " 0") {
		t.Errorf("another runner's are shown: %v", got)
	}
}

// TestDocumentationListsEveryMetric of the runner's own, and no other.
func TestDocumentationListsEveryMetric(t *testing.T) {
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("(?m)^\\| `("+namespace+"_[a-z_]+)").FindAllStringSubmatch(string(data), -1) {
		documented[name[1]] = true
	}
	m := newMetrics(t)
	m.API.Asked("get", "pods", "200")
	m.API.Took("get", time.Second)
	m.API.Heard("pods")
	m.Reports.Enrolled(nil)
	m.Reports.Waiting(func() (int, time.Time) { return 0, time.Time{} })
	m.Calls.open.WithLabelValues("Exec")
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), namespace) && !documented[f.GetName()] {
			t.Errorf("%s is not documented", f.GetName())
		}
		delete(documented, f.GetName())
	}
	for name := range documented {
		t.Errorf("%s is documented and no metric", name)
	}
}
