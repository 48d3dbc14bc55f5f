//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// traces is a collector that keeps all that it is sent.
type traces struct {
	collector.UnimplementedTraceServiceServer
	address string

	mu   sync.Mutex
	sent []*collector.ExportTraceServiceRequest
}

func newTraces(t *testing.T) *traces {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &traces{address: listener.Addr().String()}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *traces) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, req)
	return &collector.ExportTraceServiceResponse{}, nil
}

// spans are those below StartWorkload, each with its fault, in the order of their
// ends; text is all that came.
func (c *traces) spans() (below []string, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := map[string]bool{}
	for pass := range 2 {
		for _, req := range c.sent {
			for _, s := range req.GetResourceSpans()[0].GetScopeSpans() {
				for _, span := range s.GetSpans() {
					switch {
					case pass == 0 && strings.HasSuffix(span.GetName(), "/StartWorkload"):
						calls[string(span.GetSpanId())] = true
					case pass == 1 && calls[string(span.GetParentSpanId())]:
						below = append(below, strings.TrimSpace(span.GetName()+" "+span.GetStatus().GetMessage()))
					}
				}
			}
			text += prototext.Format(req)
		}
	}
	return below, text
}

// TestTraces: a collector gets a span of each phase of a start, below that of its
// call, with the token of a fault, and nothing of the request.
func TestTraces(t *testing.T) {
	c := newTraces(t)
	ns := newNamespace(t)
	r := startRunner(t, ns, "--traces-endpoint", "http://"+c.address)
	cordon(t, ns.name)
	req := sleeper()
	req.Main.Env = []*runnerv1.EnvVar{{Name: "TOKEN", Value: "s3cr3t"}}
	req.ImagePullCredentials = []*runnerv1.ImagePullCredential{{Registry: "r.example.com", Username: "s3cr3t-u", Password: "s3cr3t"}}
	r.start(t, req)
	r.start(t, req)
	req.Main.Image = "busybox:s3cr3t"
	if _, err := r.StartWorkload(t.Context(), req); err == nil {
		t.Error("another request succeeds")
	}
	r.wantMetrics(t, `k8s_runner_starts_total{reason="",result="ok"} 1`, `k8s_runner_starts_total{reason="",result="repeated"} 1`,
		`k8s_runner_starts_total{reason="workload_exists",result="failed"} 1`, `k8s_runner_start_phase_seconds_count{phase="render"} 3`,
		`k8s_runner_start_phase_seconds_count{phase="release"} 1`)
	r.stop(t)
	want := []string{"render", "create", "dependents", "release", "render", "create", "render", "create workload_exists"}
	eventually(t, 10*time.Second, "the spans are there", func() error {
		got, text := c.spans()
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		if strings.Contains(text, "s3cr3t") || strings.Contains(text, "TOKEN") || strings.Contains(text, "/Check") {
			return fmt.Errorf("they hold what they should not:\n%s", text)
		}
		return nil
	})
}
