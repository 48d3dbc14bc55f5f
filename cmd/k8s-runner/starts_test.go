package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agynio/k8s-runner/metrics"
	"github.com/agynio/k8s-runner/workload"
)

// TestStarts: results are counted with the token of their error, and no more of it.
func TestStarts(t *testing.T) {
	m, err := metrics.New()
	if err != nil {
		t.Fatal(err)
	}
	s := starts{meter: m.Starts}
	s.Started(false, nil)
	s.Started(true, nil)
	s.Started(false, workload.Errorf(workload.ResourceExhausted, "quota_exceeded", "of s3cr3t"))
	s.Started(false, context.DeadlineExceeded)
	s.Started(false, context.Canceled)
	s.Started(false, errors.New("s3cr3t: x"))
	_, end := s.Phase(t.Context(), "render")
	end(errors.New("s3cr3t"))
	answer := httptest.NewRecorder()
	m.Handler(nil).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`k8s_runner_starts_total{reason="",result="ok"} 1`,
		`k8s_runner_starts_total{reason="",result="repeated"} 1`,
		`k8s_runner_starts_total{reason="quota_exceeded",result="failed"} 1`,
		`k8s_runner_starts_total{reason="deadline_exceeded",result="failed"} 1`,
		`k8s_runner_starts_total{reason="cancelled",result="failed"} 1`,
		`k8s_runner_starts_total{reason="internal_error",result="failed"} 1`,
		`k8s_runner_start_phase_seconds_count{phase="render"} 1`,
	} {
		if !strings.Contains(answer.Body.String(), want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(answer.Body.String(), "s3cr3t") {
		t.Error("the metrics hold a secret")
	}
}
