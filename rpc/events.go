package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// Events streams Kubernetes Events.
type Events interface {
	// Stream sends the events that are there and then the new ones, until ctx ends.
	Stream(ctx context.Context, req *workload.EventRequest, send func(workload.EventRecord) error) error
}

// StreamEvents sends the Kubernetes Events of the workloads' namespace.
func (s *Server) StreamEvents(req *runnerv1.StreamEventsRequest, stream grpc.ServerStreamingServer[runnerv1.StreamEventsResponse]) error {
	if s.events == nil {
		return s.UnimplementedRunnerServiceServer.StreamEvents(req, stream)
	}
	request := &workload.EventRequest{Since: sinceSeconds(req.GetSince())}
	for _, f := range req.GetFilters() {
		request.Filters = append(request.Filters, workload.EventFilter{Field: f.GetKey(), Values: f.GetValues()})
	}
	ctx, leave, err := s.streams.enter(stream.Context(), subject(request))
	if err != nil {
		return err
	}
	defer leave()
	return s.events.Stream(ctx, request, func(e workload.EventRecord) error {
		return sent(stream.Send(&runnerv1.StreamEventsResponse{Event: &runnerv1.StreamEventsResponse_Data{
			Data: &runnerv1.RunnerEventData{Json: e.JSON, Ts: timestamppb.New(e.At)},
		}}))
	})
}

// subject is the id of the workload whose events a request asks for, empty if it
// asks for more.
func subject(req *workload.EventRequest) string {
	for _, f := range req.Filters {
		if f.Field == "involvedObject.name" && len(f.Values) == 1 {
			id, _ := workload.ParseRef(f.Values[0])
			return id
		}
	}
	return ""
}
