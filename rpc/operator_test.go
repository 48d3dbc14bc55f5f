package rpc

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/agynio/k8s-runner/metrics"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

// TestGetStatus: each part has its say, at each call.
func TestGetStatus(t *testing.T) {
	m, err := metrics.New()
	if err != nil {
		t.Fatal(err)
	}
	digest := "one"
	o := NewOperator(
		func(s *k8srunnerv1.GetStatusResponse) { s.Templates = &k8srunnerv1.TemplatesStatus{Digest: digest} },
		func(s *k8srunnerv1.GetStatusResponse) { s.Templates.Served = true },
	)
	conn, log, stop := connectTo(t, NewServer(Parts{}), o, m.Calls)
	for _, now := range []string{"one", "two"} {
		digest = now
		got, err := k8srunnerv1.NewOperatorServiceClient(conn).GetStatus(t.Context(), &k8srunnerv1.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		want := &k8srunnerv1.GetStatusResponse{Templates: &k8srunnerv1.TemplatesStatus{Digest: now, Served: true}}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	stop()
	if got := strings.Count(log.String(), `"grpc.method":"GetStatus"`); got != 2 {
		t.Errorf("two calls have %d lines:\n%s", got, log)
	}
}

// TestCallsAreMeasured with the code that the caller gets, and are there before
// the first one.
func TestCallsAreMeasured(t *testing.T) {
	m, err := metrics.New()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{panics: "x"}
	conn, _, stop := connectTo(t, NewServer(Parts{Renderer: f, Applier: f, Workloads: f, Volumes: f}), NewOperator(), m.Calls)
	client := runnerv1.NewRunnerServiceClient(conn)
	for code, call := range map[codes.Code]func() error{
		codes.NotFound: func() error {
			_, err := client.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: id})
			return err
		},
		codes.Internal: func() error {
			_, err := client.StartWorkload(t.Context(), secretRequest())
			return err
		},
		codes.Unimplemented: func() error {
			stream, err := client.StreamEvents(t.Context(), &runnerv1.StreamEventsRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	} {
		if err := call(); status.Code(err) != code {
			t.Errorf("it is %v, want %s", err, code)
		}
	}
	stop()
	answer := httptest.NewRecorder()
	m.Handler(nil).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text := answer.Body.String()
	for _, want := range []string{
		`grpc_server_handled_total{grpc_code="NotFound",grpc_method="InspectWorkload",grpc_service="agynio.api.runner.v1.RunnerService",grpc_type="unary"} 1`,
		`grpc_server_handled_total{grpc_code="Internal",grpc_method="StartWorkload",grpc_service="agynio.api.runner.v1.RunnerService",grpc_type="unary"} 1`,
		`grpc_server_handled_total{grpc_code="Unimplemented",grpc_method="StreamEvents",grpc_service="agynio.api.runner.v1.RunnerService",grpc_type="server_stream"} 1`,
		`grpc_server_handled_total{grpc_code="OK",grpc_method="GetStatus",grpc_service="k8srunner.v1.OperatorService",grpc_type="unary"} 0`,
		`grpc_server_handling_seconds_count{grpc_method="StartWorkload",grpc_service="agynio.api.runner.v1.RunnerService",grpc_type="unary"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(text, secret) {
		t.Error("the metrics hold a secret")
	}
}
