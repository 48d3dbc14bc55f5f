package metrics

import (
	"path"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
)

// Calls measures the calls of a gRPC server: how many, with which code, and how
// long each took, and which streams are open.
type Calls struct {
	server *grpcprom.ServerMetrics
	open   *prometheus.GaugeVec
}

func newCalls() *Calls {
	return &Calls{
		server: grpcprom.NewServerMetrics(grpcprom.WithServerHandlingTimeHistogram()),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "streams_open", Help: "Streams that are open now, by method.",
		}, []string{"method"}),
	}
}

func (c *Calls) all() []prometheus.Collector { return []prometheus.Collector{c.server, c.open} }

// Unary measures calls of one message each way.
func (c *Calls) Unary() grpc.UnaryServerInterceptor { return c.server.UnaryServerInterceptor() }

// Stream measures streams.
func (c *Calls) Stream() grpc.StreamServerInterceptor {
	measured := c.server.StreamServerInterceptor()
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		open := c.open.WithLabelValues(path.Base(info.FullMethod))
		open.Inc()
		defer open.Dec()
		return measured(srv, stream, info, handler)
	}
}

// Expect shows the methods that server has so far before anyone calls them: a
// rate needs a zero to start from.
func (c *Calls) Expect(server *grpc.Server) {
	c.server.InitializeMetrics(server)
	for _, service := range server.GetServiceInfo() {
		for _, method := range service.Methods {
			if method.IsServerStream || method.IsClientStream {
				c.open.WithLabelValues(method.Name)
			}
		}
	}
}
