// Package gateway is a platform's gateway to test a runner against: a real gRPC
// server that keeps what it is told, and can be slow, down, old or of another mind
// about a token.
package gateway

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/agynio/k8s-runner/proto/agynio/api/gateway/v1"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
)

// Told is a state as it came.
type Told struct {
	*runnersv1.ReportWorkloadStateRequest
	At time.Time
}

// Conduct is how a gateway behaves. Its zero value is that of one that is well.
type Conduct struct {
	// Delay is before each answer, unless the conduct changes before.
	Delay time.Duration
	// Old has none of the calls, Stateless no states of workloads.
	Old, Stateless bool
	// Refuse is the answer to each state that it returns an error for.
	Refuse func(*runnersv1.ReportWorkloadStateRequest) error
}

// Gateway keeps what runners tell it. It survives a Stop.
type Gateway struct {
	gatewayv1.UnimplementedRunnersGatewayServer

	// Options are those of the server, such as its certificate.
	Options []grpc.ServerOption
	// Enrolment is what a runner gets.
	Enrolment *runnersv1.EnrollRunnerResponse
	// Note is told of each call that was taken, if it is set.
	Note func(message any)

	mu      sync.Mutex
	token   string
	conduct Conduct
	// changed is closed when the conduct changes, which ends the delays of the one before.
	changed  chan struct{}
	enrolled int
	catalogs []*runnersv1.ReportRunnerCatalogRequest
	states   map[string][]Told
	server   *grpc.Server
	served   chan struct{}
}

// New returns a gateway that takes token.
func New(token string) *Gateway {
	return &Gateway{
		token: token, changed: make(chan struct{}), states: map[string][]Told{},
		Enrolment: &runnersv1.EnrollRunnerResponse{ServiceName: "runner-one", IdentityId: "identity", IdentityJson: []byte(`{"secret":"of the identity"}`)},
	}
}

// Start serves on address, host:port, and returns the address that it has.
func (g *Gateway) Start(ctx context.Context, address string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("serving the gateway: %w", err)
	}
	server, served := grpc.NewServer(g.Options...), make(chan struct{})
	gatewayv1.RegisterRunnersGatewayServer(server, g)
	g.mu.Lock()
	g.server, g.served = server, served
	g.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it returns when the gateway is stopped
	}()
	return listener.Addr().String(), nil
}

// Stop ends the server at once, as if it were killed. What it was told it knows.
func (g *Gateway) Stop() {
	g.mu.Lock()
	server, served := g.server, g.served
	g.mu.Unlock()
	server.Stop()
	<-served
}

// Behave changes how it behaves from now on.
func (g *Gateway) Behave(c Conduct) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conduct = c
	close(g.changed)
	g.changed = make(chan struct{})
}

// Take changes the token that it takes.
func (g *Gateway) Take(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = token
}

// Forget forgets all that it was told.
func (g *Gateway) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalogs, g.states = nil, map[string][]Told{}
}

// Enrolled is how often a runner was enrolled.
func (g *Gateway) Enrolled() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enrolled
}

// Catalogs are those that it was told, in their order.
func (g *Gateway) Catalogs() []*runnersv1.ReportRunnerCatalogRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*runnersv1.ReportRunnerCatalogRequest{}, g.catalogs...)
}

// States are those of workload id that it was told, in their order.
func (g *Gateway) States(id string) []Told {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Told{}, g.states[id]...)
}

// Newest is the last state of workload id that it was told, or nil.
func (g *Gateway) Newest(id string) *Told {
	if all := g.States(id); len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

// enter waits as long as an answer takes and returns what is wrong with the call.
func (g *Gateway) enter(ctx context.Context, token string) (Conduct, error) {
	g.mu.Lock()
	conduct, changed, taken := g.conduct, g.changed, g.token
	g.mu.Unlock()
	select {
	case <-ctx.Done():
		return conduct, status.FromContextError(ctx.Err()).Err()
	case <-changed:
	case <-time.After(conduct.Delay):
	}
	if conduct.Old {
		return conduct, status.Error(codes.Unimplemented, "unknown method")
	}
	if token != taken {
		return conduct, status.Errorf(codes.Unauthenticated, "there is no runner with the token %s", token) // as a careless one says it
	}
	return conduct, nil
}

func (g *Gateway) note(message any) {
	if g.Note != nil {
		g.Note(message)
	}
}

// EnrollRunner is the gateway's.
func (g *Gateway) EnrollRunner(ctx context.Context, req *runnersv1.EnrollRunnerRequest) (*runnersv1.EnrollRunnerResponse, error) {
	if _, err := g.enter(ctx, req.GetServiceToken()); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enrolled++
	g.note(req)
	return g.Enrolment, nil
}

// ReportRunnerCatalog is the gateway's.
func (g *Gateway) ReportRunnerCatalog(ctx context.Context, req *runnersv1.ReportRunnerCatalogRequest) (*runnersv1.ReportRunnerCatalogResponse, error) {
	if _, err := g.enter(ctx, req.GetServiceToken()); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catalogs = append(g.catalogs, req)
	g.note(req)
	return &runnersv1.ReportRunnerCatalogResponse{
		FlavorCount: int32(len(req.GetFlavors())), StorageClassCount: int32(len(req.GetStorageClasses())), CapabilityCount: int32(len(req.GetCapabilities())), //nolint:gosec // there are few
	}, nil
}

// ReportWorkloadState is the gateway's.
func (g *Gateway) ReportWorkloadState(ctx context.Context, req *runnersv1.ReportWorkloadStateRequest) (*runnersv1.ReportWorkloadStateResponse, error) {
	at := time.Now()
	conduct, err := g.enter(ctx, req.GetServiceToken())
	if err != nil {
		return nil, err
	}
	if conduct.Stateless {
		return nil, status.Error(codes.Unimplemented, "unknown method")
	}
	if conduct.Refuse != nil {
		if err := conduct.Refuse(req); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.states[req.GetWorkloadId()] = append(g.states[req.GetWorkloadId()], Told{req, at})
	g.note(req)
	return &runnersv1.ReportWorkloadStateResponse{Applied: true}, nil
}
