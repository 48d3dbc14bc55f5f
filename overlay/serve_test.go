package overlay

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// tcp is a network of real connections.
type tcp struct {
	address string
	bound   chan net.Listener
}

func (n *tcp) Listen(ctx context.Context) (Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", n.address)
	if err != nil {
		return nil, err
	}
	n.bound <- l
	return led{l}, nil
}

func (*tcp) Refresh(context.Context) error { return nil }
func (*tcp) Close() error                  { return nil }

type led struct{ net.Listener }

func (led) Established() bool { return true }

// TestCallsAcrossRebind: a gRPC server serves each listener, and calls that began on an
// earlier one go on.
func TestCallsAcrossRebind(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	network := &tcp{address: freeAddress(t), bound: make(chan net.Listener, 1)}
	server := grpc.NewServer()
	checks := health.NewServer()
	healthv1.RegisterHealthServer(server, checks)
	b := New(Options{
		Network: network, Serve: server.Serve, Meter: &counts{by: map[string]int{}}, Log: quiet(),
		Poll: 20 * time.Millisecond,
	})
	go func() {
		<-ctx.Done()
		server.GracefulStop()
	}()
	result := make(chan error, 1)
	go func() { result <- b.Run(ctx) }()

	var earlier grpc.ServerStreamingClient[healthv1.HealthCheckResponse]
	for round := range 3 {
		l := within(t, network.bound)
		client := dial(t, network.address)
		if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
			t.Fatalf("a call after binding %d times: %v", round+1, err)
		}
		if round == 0 {
			var err error
			if earlier, err = client.Watch(ctx, &healthv1.HealthCheckRequest{}); err != nil {
				t.Fatal(err)
			}
			if _, err := earlier.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		if round < 2 {
			l.Close()
		}
	}
	checks.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	if answer, err := earlier.Recv(); err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("a stream of the first listener brings %v, %v", answer, err)
	}
	checks.Shutdown()
	stop()
	if err := within(t, result); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func within[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("it takes more than 30 s")
	}
	return v
}

func dial(t *testing.T, address string) healthv1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return healthv1.NewHealthClient(conn)
}

// freeAddress is one of loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
