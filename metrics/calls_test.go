package metrics

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// TestStreamsOpen counts streams while they are open, however they end, and shows
// those that a server has before anyone opens one.
func TestStreamsOpen(t *testing.T) {
	m := newMetrics(t)
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, lines(t, m, "k8s_runner_streams_open")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, health.NewServer())
	m.Calls.Expect(server)
	want("at first", `k8s_runner_streams_open{method="Watch"} 0`)
	open := func(method string, do func() error) error {
		return m.Calls.Stream()(nil, &middleware.WrappedServerStream{WrappedContext: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/a.service.v1.Name/" + method}, func(any, grpc.ServerStream) error { return do() })
	}
	failed := errors.New("x")
	err := open("Watch", func() error {
		return open("Watch", func() error {
			want("with two", `k8s_runner_streams_open{method="Watch"} 2`)
			return open("Exec", func() error {
				want("with another", `k8s_runner_streams_open{method="Exec"} 1`, `k8s_runner_streams_open{method="Watch"} 2`)
				return failed
			})
		})
	})
	if !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = open("Exec", func() error { panic("x") })
	}()
	want("afterwards", `k8s_runner_streams_open{method="Exec"} 0`, `k8s_runner_streams_open{method="Watch"} 0`)
}
