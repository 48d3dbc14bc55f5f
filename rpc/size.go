package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

const (
	// maxRequest is the size of the largest request, in bytes, but for one with an
	// archive. It is what gRPC's servers take where nothing is said.
	maxRequest = 4 << 20
	// beyond is how far above a limit, in bytes, a caller is still told it in the
	// runner's words.
	beyond = 64 << 20
)

// receives is what gRPC itself lets pass, in bytes. What is larger it refuses with
// the right code, but in its own words, which nothing can change. Therefore more is
// read than is taken.
func (s *Server) receives() int {
	return maxRequest + int(s.maxArchive+min(s.maxArchive, beyond))
}

func boundUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if info.FullMethod != runnerv1.RunnerService_PutArchive_FullMethodName {
		if err := bounded(req); err != nil {
			return nil, err
		}
	}
	return handler(ctx, req)
}

func boundStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, boundedStream{stream})
}

// boundedStream refuses messages that are too large.
type boundedStream struct{ grpc.ServerStream }

func (b boundedStream) RecvMsg(m any) error {
	if err := b.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return bounded(m)
}

func bounded(message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return nil
	}
	if size := proto.Size(m); size > maxRequest {
		return workload.Errorf(workload.ResourceExhausted, "request_too_large", "the request has %d bytes, and the limit is %d", size, maxRequest)
	}
	return nil
}
