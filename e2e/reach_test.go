//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// TestReach: a runner whose API server is away lives, answers from its caches and
// is not ready, which it says with the reason; soon after the API server is back it
// is ready again. A short break counts for nothing.
func TestReach(t *testing.T) {
	ns := newNamespace(t)
	way := newProxy(t)
	r := startRunner(t, ns.through(t, way.server(), suite.config.CAData))
	cordon(t, ns.name)
	req := sleeper()
	r.start(t, req)
	ready := func(want int) func() error {
		return func() error {
			if code, body := r.get(t, "/readyz"); code != want {
				return fmt.Errorf("it is %d %s", code, body)
			}
			return nil
		}
	}
	way.close()
	begin := time.Now()
	for time.Since(begin) < 5*time.Second {
		if err := ready(http.StatusOK)(); err != nil {
			t.Fatalf("after %s %v", time.Since(begin), err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	eventually(t, 30*time.Second, "it is not ready", ready(http.StatusServiceUnavailable))
	t.Logf("it was ready for %s more", time.Since(begin))
	if _, body := r.get(t, "/readyz"); !regexp.MustCompile(`^kubernetes: out of reach since [-0-9T:]+Z: no answer: .*\n$`).MatchString(body) || strings.Contains(body, ns.token) {
		t.Errorf("it says %q", body)
	}
	if code, body := r.get(t, "/livez"); code != http.StatusOK {
		t.Errorf("it does not live: %d %s", code, body)
	}
	answer, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("gRPC's health is %v, %v", answer, err)
	}
	if got := r.inspect(t, req.GetWorkloadId()); got.GetId() != req.GetWorkloadId() {
		t.Errorf("it reads %v", got)
	}
	way.open(t)
	begin = time.Now()
	eventually(t, 10*time.Second, "it is ready again", ready(http.StatusOK))
	t.Logf("it was ready %s after", time.Since(begin))
	_, text := r.get(t, "/metrics")
	for _, want := range []string{
		`k8s_runner_api_requests_total\{code="201",resource="pods",verb="create"\} 1`,
		`k8s_runner_api_requests_total\{code="error",resource="",verb="get"\} [1-9]`,
		`k8s_runner_api_request_seconds_count\{verb="create"\} [1-9]`,
		`k8s_runner_cache_age_seconds\{cache="pods"\} [0-9.]+`,
		`k8s_runner_cache_age_seconds\{cache="configmaps"\} [0-9.]+`,
	} {
		if !regexp.MustCompile("(?m)^" + want).MatchString(text) {
			t.Errorf("the metrics have no %s\n%s", want, text)
		}
	}
	if strings.Contains(text, `_seconds_count{verb="watch"}`) {
		t.Error("watches are timed")
	}
}
