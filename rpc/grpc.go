package rpc

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

// Meter measures calls.
type Meter interface {
	Unary() grpc.UnaryServerInterceptor
	Stream() grpc.StreamServerInterceptor
	// Expect shows the methods that server has so far before anyone calls them.
	Expect(server *grpc.Server)
}

const (
	// pingEvery and pingTimeout find out that a silent caller is gone, whose commands
	// would run on otherwise.
	pingEvery   = 30 * time.Second
	pingTimeout = 20 * time.Second
	// pingsAllowed is how often callers may ping: gRPC's five minutes would end the
	// session of one that pings to keep it.
	pingsAllowed = 5 * time.Second
)

// NewGRPC returns a gRPC server for s and o with metrics, logging, recovery,
// health and reflection. An answer or an error passes recovery, then
// translation, then the log, then the meter. Each call has an id, which lines of log
// show if that has the hook LogFields.
func NewGRPC(s *Server, o *Operator, meter Meter, log *logrus.Logger, more ...grpc.ServerOption) (*grpc.Server, *health.Server) {
	lines := logging.LoggerFunc(func(ctx context.Context, level logging.Level, message string, fields ...any) {
		log.WithContext(ctx).WithFields(pairs(fields)).Log(logrusLevel(level), message)
	})
	options := []logging.Option{logging.WithLogOnEvents(logging.FinishCall), logging.WithLevels(level)}
	// Health checks and reflection would drown the callers' lines.
	ours := selector.MatchFunc(func(_ context.Context, call interceptors.CallMeta) bool {
		return call.Service == runnerv1.RunnerService_ServiceDesc.ServiceName ||
			call.Service == k8srunnerv1.OperatorService_ServiceDesc.ServiceName
	})
	recovered := recovery.WithRecoveryHandlerContext(func(_ context.Context, p any) error {
		return fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	})
	server := grpc.NewServer(append(more,
		grpc.WaitForHandlers(true), // a start that is cancelled takes back what it made
		grpc.MaxRecvMsgSize(s.receives()),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAllowed, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(identifyUnary, meter.Unary(),
			selector.UnaryServerInterceptor(logging.UnaryServerInterceptor(lines, options...), ours), translateUnary, recovery.UnaryServerInterceptor(recovered), boundUnary),
		grpc.ChainStreamInterceptor(identifyStream, beside(meter.Stream()),
			selector.StreamServerInterceptor(beside(logging.StreamServerInterceptor(lines, options...)), ours), translateStream, recovery.StreamServerInterceptor(recovered), boundStream),
	)...)
	runnerv1.RegisterRunnerServiceServer(server, s)
	k8srunnerv1.RegisterOperatorServiceServer(server, o)
	meter.Expect(server)
	ready := health.NewServer()
	healthv1.RegisterHealthServer(server, ready)
	reflection.Register(server)
	return server, ready
}

// beside has an interceptor see how a stream begins and ends, and not each of its
// messages: to count the lines of a log costs as much as to send them.
func beside(interceptor grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return interceptor(srv, stream, info, func(srv any, _ grpc.ServerStream) error { return handler(srv, stream) })
	}
}

func pairs(list []any) logrus.Fields {
	fields := make(logrus.Fields, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[fmt.Sprint(list[i])] = list[i+1]
	}
	return fields
}

func logrusLevel(l logging.Level) logrus.Level {
	switch {
	case l >= logging.LevelError:
		return logrus.ErrorLevel
	case l >= logging.LevelWarn:
		return logrus.WarnLevel
	case l >= logging.LevelInfo:
		return logrus.InfoLevel
	}
	return logrus.DebugLevel
}
