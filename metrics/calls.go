package metrics

import (
	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"google.golang.org/grpc"
)

// Calls measures the calls of a gRPC server: how many, with which code, and how
// long each took.
type Calls struct{ server *grpcprom.ServerMetrics }

func newCalls() *Calls {
	return &Calls{server: grpcprom.NewServerMetrics(grpcprom.WithServerHandlingTimeHistogram())}
}

// Unary measures calls of one message each way.
func (c *Calls) Unary() grpc.UnaryServerInterceptor { return c.server.UnaryServerInterceptor() }

// Stream measures streams.
func (c *Calls) Stream() grpc.StreamServerInterceptor { return c.server.StreamServerInterceptor() }

// Expect shows the methods that server has so far before anyone calls them: a
// rate needs a zero to start from.
func (c *Calls) Expect(server *grpc.Server) { c.server.InitializeMetrics(server) }
