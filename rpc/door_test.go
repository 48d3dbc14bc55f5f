package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

// TestDoor: health and Ready are answered, and no other call of any kind.
func TestDoor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door := NewDoor(NewServer(Parts{}), health.NewServer())
	served := make(chan error, 1)
	go func() { served <- door.Serve(listener) }()
	defer func() {
		door.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := runnerv1.NewRunnerServiceClient(conn).Ready(t.Context(), &runnerv1.ReadyRequest{}); err != nil {
		t.Errorf("Ready: %v", err)
	}
	if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	for _, method := range runnerv1.RunnerService_ServiceDesc.Methods {
		if method.MethodName == "Ready" {
			continue
		}
		if err := conn.Invoke(t.Context(), "/"+runnerv1.RunnerService_ServiceDesc.ServiceName+"/"+method.MethodName, &runnerv1.ReadyRequest{}, &runnerv1.ReadyResponse{}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", method.MethodName, err)
		}
	}
	for _, stream := range runnerv1.RunnerService_ServiceDesc.Streams {
		if err := streamed(t.Context(), conn, "/"+runnerv1.RunnerService_ServiceDesc.ServiceName+"/"+stream.StreamName); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", stream.StreamName, err)
		}
	}
	for _, other := range []string{"/" + k8srunnerv1.OperatorService_ServiceDesc.ServiceName + "/GetStatus", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"} {
		if err := streamed(t.Context(), conn, other); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// streamed calls a method as a stream, and returns how it ends.
func streamed(ctx context.Context, conn *grpc.ClientConn, method string) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&runnerv1.ReadyRequest{}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return stream.RecvMsg(&runnerv1.ReadyResponse{})
}
