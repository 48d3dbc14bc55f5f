package reporter

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	gatewayv1 "github.com/agynio/k8s-runner/proto/agynio/api/gateway/v1"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
)

const (
	// callLimit bounds one call: a gateway may be slow, and still do its work.
	callLimit = 30 * time.Second
	// pingEvery and pingTimeout find out that the gateway is gone without a word. One
	// that wants fewer pings says so, and gets them.
	pingEvery   = 30 * time.Second
	pingTimeout = 10 * time.Second
)

// Gateway is the platform's, as the runner calls it: over one connection, with the
// service token in each call. Its errors never hold the token.
type Gateway struct {
	conn   *grpc.ClientConn
	client gatewayv1.RunnersGatewayClient
	token  string
	// runnerID is set once, before the first report.
	runnerID string
}

// Dial returns the gateway at address, host:port. It connects when it is called.
func Dial(address, token string, transport credentials.TransportCredentials) (*Gateway, error) {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(transport),
		grpc.WithIdleTimeout(0), // a report finds the connection there
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{
			// A second is what a state may be late after the gateway is back.
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the gateway %s: %w", address, err)
	}
	return &Gateway{conn: conn, client: gatewayv1.NewRunnersGatewayClient(conn), token: token}, nil
}

// Identify sets the id that the reports carry. It is to be called before the first
// one.
func (g *Gateway) Identify(runnerID string) { g.runnerID = runnerID }

// Close ends the connection.
func (g *Gateway) Close() error {
	if err := g.conn.Close(); err != nil {
		return fmt.Errorf("closing the connection to the gateway: %w", err)
	}
	return nil
}

func (g *Gateway) enrol(ctx context.Context) (*runnersv1.EnrollRunnerResponse, error) {
	answer, err := g.client.EnrollRunner(ctx, &runnersv1.EnrollRunnerRequest{ServiceToken: g.token})
	return answer, g.without(err)
}

func (g *Gateway) reportCatalog(ctx context.Context, catalog *runnersv1.ReportRunnerCatalogRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	catalog.RunnerId, catalog.ServiceToken = g.runnerID, g.token
	_, err := g.client.ReportRunnerCatalog(ctx, catalog)
	return g.without(err)
}

func (g *Gateway) reportState(ctx context.Context, r *report) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := g.client.ReportWorkloadState(ctx, &runnersv1.ReportWorkloadStateRequest{
		RunnerId: g.runnerID, ServiceToken: g.token,
		WorkloadId: r.id, Status: r.status, Containers: r.containers, ObservedAt: r.observedAt,
	})
	return g.without(err)
}

// watch tells when the connection is lost and when it is there again, until ctx
// ends. It keeps it up.
func (g *Gateway) watch(ctx context.Context, lost, back func()) {
	for was := false; ; {
		state := g.conn.GetState()
		if was { // it changed, if only for a moment
			lost()
		}
		if was = state == connectivity.Ready; was {
			back()
		}
		if state == connectivity.Idle {
			g.conn.Connect()
		}
		if !g.conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}
