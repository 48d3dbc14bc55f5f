package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// NewDoor returns a gRPC server that answers health and Ready alone, for where all
// else is served on the overlay: whoever knocks there was not let in by it.
func NewDoor(s *Server, healthy *health.Server, more ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(more,
		grpc.ChainUnaryInterceptor(translateUnary, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if !opens(info.FullMethod) {
				return nil, errClosed()
			}
			return handle(ctx, req)
		}),
		grpc.ChainStreamInterceptor(translateStream, func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if !opens(info.FullMethod) {
				return errClosed()
			}
			return handle(srv, stream)
		}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errClosed() }),
	)...)
	runnerv1.RegisterRunnerServiceServer(server, s)
	healthv1.RegisterHealthServer(server, healthy)
	return server
}

func opens(method string) bool {
	switch method {
	case runnerv1.RunnerService_Ready_FullMethodName, healthv1.Health_Check_FullMethodName,
		healthv1.Health_List_FullMethodName, healthv1.Health_Watch_FullMethodName:
		return true
	}
	return false
}

func errClosed() error {
	return workload.Errorf(workload.PermissionDenied, "overlay_only", "this runner serves its API on the overlay; here it answers health and Ready alone")
}
