package tracing

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// span is what a test looks at.
type span struct{ Name, Parent, Fault string }

func spansOf(stubs tracetest.SpanStubs) (spans []span) {
	names := map[string]string{}
	for _, s := range stubs {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	for _, s := range stubs {
		fault := s.Status.Description
		if fault == "" && s.Status.Code == codes.Error {
			fault = "?"
		}
		spans = append(spans, span{s.Name, names[s.Parent.SpanID().String()], fault})
	}
	return spans
}

// TestSpan: a span is below that of its context, and says the token of a fault.
func TestSpan(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	traces := of(trace.WithSyncer(kept))
	outer, endOuter := traces.Span(t.Context(), "outer")
	_, endFirst := traces.Span(outer, "first")
	endFirst("")
	_, endSecond := traces.Span(outer, "second")
	endSecond("quota_exceeded")
	endOuter("")
	want := []span{{"first", "outer", ""}, {"second", "outer", "quota_exceeded"}, {"outer", "", ""}}
	if diff := cmp.Diff(want, spansOf(kept.GetSpans())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNone: without an endpoint nothing is made.
func TestNone(t *testing.T) {
	traces, err := New(t.Context(), "", nil)
	if err != nil || traces != nil || traces.Calls() != nil {
		t.Fatalf("there is %v, %v", traces, err)
	}
	ctx, end := traces.Span(t.Context(), "x")
	end("")
	if ctx != t.Context() {
		t.Error("the context is another one")
	}
	if err := traces.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCalls: the span of a call is the caller's child; health checks have none.
func TestCalls(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	server := grpc.NewServer(grpc.StatsHandler(of(trace.WithSyncer(kept)).Calls()))
	healthv1.RegisterHealthServer(server, health.NewServer())
	// The same service under another name stands for any other.
	described := healthv1.Health_ServiceDesc
	described.ServiceName = "a.Service"
	server.RegisterService(&described, health.NewServer())
	conn := serve(t, server)
	const parent = "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent)
	for _, service := range []string{"grpc.health.v1.Health", "a.Service"} {
		if err := conn.Invoke(ctx, "/"+service+"/Check", &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	server.GracefulStop()
	spans := kept.GetSpans()
	if len(spans) != 1 || spans[0].Name != "a.Service/Check" || !strings.Contains(parent, spans[0].Parent.SpanID().String()) ||
		!strings.Contains(parent, spans[0].SpanContext.TraceID().String()) {
		t.Errorf("the spans are %+v", spans)
	}
}

// serve serves on loopback until the test ends.
func serve(t *testing.T, server *grpc.Server) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// receiver is an OTLP collector that keeps the names of spans, by service.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []string
}

func (r *receiver) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range req.GetResourceSpans() {
		service := ""
		for _, a := range from.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.spans = append(r.spans, service+": "+s.GetName())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestCollector: what is left when the runner ends arrives.
func TestCollector(t *testing.T) {
	r := &receiver{}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	conn := serve(t, server)
	traces, err := New(t.Context(), "http://"+conn.Target(), logrus.New())
	if err != nil {
		t.Fatal(err)
	}
	_, end := traces.Span(t.Context(), "create")
	end("")
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"k8s-runner: create"}; !slices.Equal(r.spans, want) {
		t.Errorf("there arrive %v", r.spans)
	}
}

// TestNoCollector: without one the end comes soon all the same.
func TestNoCollector(t *testing.T) {
	log, lines := logtest.NewNullLogger()
	traces, err := New(t.Context(), "http://127.0.0.1:1", log)
	if err != nil {
		t.Fatal(err)
	}
	_, end := traces.Span(t.Context(), "create")
	end("")
	begin := time.Now()
	if err := traces.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(lines.AllEntries()) != 1 {
		t.Errorf("the log has %d lines", len(lines.AllEntries()))
	}
	if took := time.Since(begin); took > flushLimit {
		t.Errorf("the end takes %s", took)
	}
}

// failing is an exporter that fails as long as it is told to.
type failing struct {
	trace.SpanExporter
	err error
}

func (f *failing) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return f.err }

// TestTeller says once that spans are lost, and again after some arrived.
func TestTeller(t *testing.T) {
	log, lines := logtest.NewNullLogger()
	by := &failing{}
	teller := &teller{SpanExporter: by, log: log}
	for _, err := range []error{net.ErrClosed, net.ErrClosed, nil, net.ErrClosed} {
		by.err = err
		if err := teller.ExportSpans(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if len(lines.AllEntries()) != 2 {
		t.Errorf("the log has %d lines", len(lines.AllEntries()))
	}
}
