package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// Logs streams what containers wrote.
type Logs interface {
	// Stream sends a container's log until it ends, or as long as the container runs.
	Stream(ctx context.Context, req *workload.LogRequest, send func(workload.LogPiece) error) error
}

// StreamWorkloadLogs sends the log of a container, a chunk for each line.
func (s *Server) StreamWorkloadLogs(req *runnerv1.StreamWorkloadLogsRequest, stream grpc.ServerStreamingServer[runnerv1.StreamWorkloadLogsResponse]) error {
	if s.logs == nil {
		return s.UnimplementedRunnerServiceServer.StreamWorkloadLogs(req, stream)
	}
	request, err := s.logRequest(req)
	if err != nil {
		return err
	}
	ctx, leave, err := s.streams.enter(stream.Context(), request.Target.ID)
	if err != nil {
		return err
	}
	defer leave()
	// One message for all: it is encoded before Send returns.
	at, chunk := &timestamppb.Timestamp{}, &runnerv1.LogChunk{}
	message := &runnerv1.StreamWorkloadLogsResponse{Event: &runnerv1.StreamWorkloadLogsResponse_Chunk{Chunk: chunk}}
	return s.logs.Stream(ctx, request, func(p workload.LogPiece) error {
		chunk.Data, chunk.Ts = p.Data, nil
		if !p.At.IsZero() {
			at.Seconds, at.Nanos = p.At.Unix(), int32(p.At.Nanosecond()) //nolint:gosec // below 10^9
			chunk.Ts = at
		}
		return sent(stream.Send(message))
	})
}

// logRequest reads a request. Its deprecated fields count where the new ones are
// unset; stdout, stderr and timestamps never do.
func (s *Server) logRequest(req *runnerv1.StreamWorkloadLogsRequest) (*workload.LogRequest, error) {
	name := req.GetContainerName()
	if name == "" {
		return nil, workload.Invalid([]workload.Violation{{Field: "container_name", Token: "container_name_required", Message: "name the container"}})
	}
	state, err := s.find(req.GetWorkloadId())
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(state.Containers, func(c workload.ContainerState) bool { return c.Name == name }) {
		return nil, workload.Errorf(workload.NotFound, "container_not_found", "the workload %s has no container %q", state.ID, name)
	}
	out := &workload.LogRequest{
		Target: workload.Target{ID: state.ID, UID: state.UID, Container: name},
		Follow: req.GetFollow(),
	}
	lines := req.GetTailLines()
	if lines == 0 {
		lines = req.GetTail() //nolint:staticcheck // existing clients send it
	}
	if lines > 0 {
		tail := int64(lines)
		out.Tail = &tail
	}
	switch at := req.GetSinceTime(); {
	case at != nil && !at.IsValid():
		return nil, workload.Invalid([]workload.Violation{{Field: "since_time", Token: "invalid_since_time", Message: "there is no such time"}})
	case at != nil:
		out.Since = at.AsTime()
	default:
		out.Since = sinceSeconds(req.GetSince()) //nolint:staticcheck // existing clients send it
	}
	return out, nil
}

// sinceSeconds is a time in Unix seconds; the zero time, which leaves out
// nothing, for none.
func sinceSeconds(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// sent is the error of sending to a caller: it only fails if the caller is gone.
func sent(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: sending: %w", context.Canceled, err)
}
