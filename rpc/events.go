package rpc

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// Events streams Kubernetes Events.
type Events interface {
	// Stream sends the events that are there and then the new ones, until ctx ends.
	Stream(ctx context.Context, req *workload.EventRequest, send func(workload.EventRecord) error) error
}

// StreamEvents streams Events until the caller goes away.
func (s *Server) StreamEvents(req *runnerv1.StreamEventsRequest, stream runnerv1.RunnerService_StreamEventsServer) error {
	if s.events == nil {
		return s.UnimplementedRunnerServiceServer.StreamEvents(req, stream)
	}
	asked := &workload.EventRequest{}
	if req.GetSince() > 0 {
		asked.Since = time.Unix(req.GetSince(), 0)
	}
	for _, f := range req.GetFilters() {
		asked.Filters = append(asked.Filters, workload.EventFilter{Field: f.GetKey(), Values: f.GetValues()})
	}
	return s.events.Stream(stream.Context(), asked, func(e workload.EventRecord) error {
		return stream.Send(&runnerv1.StreamEventsResponse{Event: &runnerv1.StreamEventsResponse_Data{Data: &runnerv1.RunnerEventData{
			Json: e.JSON, Ts: timestamppb.New(e.At),
		}}})
	})
}
