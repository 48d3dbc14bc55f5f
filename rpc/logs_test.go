package rpc

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// fakeStreams sends pieces of logs and events, and ends with an error, or only
// with its context.
type fakeStreams struct {
	pieces  []workload.LogPiece
	records []workload.EventRecord
	err     error
	lasts   bool

	logRequests   chan workload.LogRequest
	eventRequests chan workload.EventRequest
}

func newFakeStreams() *fakeStreams {
	return &fakeStreams{logRequests: make(chan workload.LogRequest, 100), eventRequests: make(chan workload.EventRequest, 100)}
}

type fakeLogs struct{ *fakeStreams }

func (f fakeLogs) Stream(ctx context.Context, req *workload.LogRequest, send func(workload.LogPiece) error) error {
	f.logRequests <- *req
	for _, p := range f.pieces {
		if err := send(p); err != nil {
			return err
		}
	}
	return f.end(ctx)
}

type fakeEvents struct{ *fakeStreams }

func (f fakeEvents) Stream(ctx context.Context, req *workload.EventRequest, send func(workload.EventRecord) error) error {
	f.eventRequests <- *req
	for _, r := range f.records {
		if err := send(r); err != nil {
			return err
		}
	}
	return f.end(ctx)
}

func (f *fakeStreams) end(ctx context.Context) error {
	if f.lasts {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return f.err
}

// serveStreams serves f, with a workload of the containers main and side.
func serveStreams(t *testing.T, f *fakeStreams, limit int) (runnerv1.RunnerServiceClient, *Server) {
	t.Helper()
	cluster := &fake{states: map[string]*workload.State{id: {
		ID: id, UID: "uid", Containers: []workload.ContainerState{{Name: "main"}, {Name: "side"}},
	}}}
	s := NewServer(Parts{
		Renderer: cluster, Applier: cluster, Workloads: cluster, Volumes: cluster,
		Logs: fakeLogs{f}, Events: fakeEvents{f}, StreamsPerWorkload: limit,
	})
	conn, _, _ := connectToServer(t, s)
	return runnerv1.NewRunnerServiceClient(conn), s
}

// all receives until the end of a stream, which is nil if it was OK.
func all[M any](stream grpc.ServerStreamingClient[M], err error) ([]*M, error) {
	if err != nil {
		return nil, err
	}
	var out []*M
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m)
	}
}

func TestLogs(t *testing.T) {
	f := newFakeStreams()
	f.pieces = []workload.LogPiece{{Data: []byte("a\n"), At: time.Unix(1, 2)}, {Data: []byte("\xd4\xff")}}
	client, _ := serveStreams(t, f, 0)
	got, err := all(client.StreamWorkloadLogs(context.Background(), &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, ContainerName: "side"}))
	if err != nil {
		t.Fatal(err)
	}
	chunk := func(data string, ts *timestamppb.Timestamp) *runnerv1.StreamWorkloadLogsResponse {
		return &runnerv1.StreamWorkloadLogsResponse{Event: &runnerv1.StreamWorkloadLogsResponse_Chunk{Chunk: &runnerv1.LogChunk{Data: []byte(data), Ts: ts}}}
	}
	want := []*runnerv1.StreamWorkloadLogsResponse{chunk("a\n", &timestamppb.Timestamp{Seconds: 1, Nanos: 2}), chunk("\xd4\xff", nil)}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.err = workload.Errorf(workload.Unavailable, "workload_deleted", "x").Retry(time.Second)
	_, err = all(client.StreamWorkloadLogs(context.Background(), &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, ContainerName: "side"}))
	if diff := cmp.Diff(answer{Code: codes.Unavailable, Token: "workload_deleted", Reason: "WORKLOAD_DELETED", Domain: "k8s-runner", Retry: time.Second}, answerOf(t, err)); diff != "" {
		t.Errorf("the end (-want +got):\n%s", diff)
	}
}

// TestLogRequests: the deprecated fields count where the new ones are unset.
//
//nolint:staticcheck // existing clients send them
func TestLogRequests(t *testing.T) {
	five, seven := int64(5), int64(7)
	target := workload.Target{ID: id, UID: "uid", Container: "main"}
	f := newFakeStreams()
	client, _ := serveStreams(t, f, 0)
	for name, c := range map[string]struct {
		req  *runnerv1.StreamWorkloadLogsRequest
		want workload.LogRequest
	}{
		"plain":             {&runnerv1.StreamWorkloadLogsRequest{}, workload.LogRequest{}},
		"by the Pod's name": {&runnerv1.StreamWorkloadLogsRequest{WorkloadId: "workload-" + id}, workload.LogRequest{}},
		"follow":            {&runnerv1.StreamWorkloadLogsRequest{Follow: true}, workload.LogRequest{Follow: true}},
		"tail_lines":        {&runnerv1.StreamWorkloadLogsRequest{TailLines: 5, Tail: 7}, workload.LogRequest{Tail: &five}},
		"tail":              {&runnerv1.StreamWorkloadLogsRequest{Tail: 7}, workload.LogRequest{Tail: &seven}},
		"since_time":        {&runnerv1.StreamWorkloadLogsRequest{SinceTime: &timestamppb.Timestamp{Seconds: 5, Nanos: 6}, Since: 7}, workload.LogRequest{Since: time.Unix(5, 6).UTC()}},
		"since":             {&runnerv1.StreamWorkloadLogsRequest{Since: 7}, workload.LogRequest{Since: time.Unix(7, 0)}},
		"since before 1970": {&runnerv1.StreamWorkloadLogsRequest{Since: -7}, workload.LogRequest{}},
		"what is ignored":   {&runnerv1.StreamWorkloadLogsRequest{Stderr: true, Timestamps: true}, workload.LogRequest{}},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.ContainerName = "main"
			if c.req.WorkloadId == "" {
				c.req.WorkloadId = id
			}
			if _, err := all(client.StreamWorkloadLogs(context.Background(), c.req)); err != nil {
				t.Fatal(err)
			}
			c.want.Target = target
			if diff := cmp.Diff(c.want, <-f.logRequests); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedLogRequests(t *testing.T) {
	client, _ := serveStreams(t, newFakeStreams(), 0)
	for name, c := range map[string]struct {
		req  *runnerv1.StreamWorkloadLogsRequest
		want answer
	}{
		"no container": {&runnerv1.StreamWorkloadLogsRequest{WorkloadId: id}, answer{
			Code: codes.InvalidArgument, Token: "container_name_required", Reason: "CONTAINER_NAME_REQUIRED",
			Fields: []string{"container_name CONTAINER_NAME_REQUIRED name the container"},
		}},
		"an unknown container": {&runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, ContainerName: "x"}, answer{
			Code: codes.NotFound, Token: "container_not_found", Reason: "CONTAINER_NOT_FOUND",
		}},
		"an unknown workload": {&runnerv1.StreamWorkloadLogsRequest{WorkloadId: "x", ContainerName: "main"}, answer{
			Code: codes.NotFound, Token: "workload_not_found", Reason: "WORKLOAD_NOT_FOUND",
		}},
		"no time": {&runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, ContainerName: "main", SinceTime: &timestamppb.Timestamp{Nanos: -1}}, answer{
			Code: codes.InvalidArgument, Token: "invalid_since_time", Reason: "INVALID_SINCE_TIME",
			Fields: []string{"since_time INVALID_SINCE_TIME there is no such time"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := all(client.StreamWorkloadLogs(context.Background(), c.req))
			c.want.Domain = "k8s-runner"
			if diff := cmp.Diff(c.want, answerOf(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	f := newFakeStreams()
	f.records = []workload.EventRecord{{JSON: `{"a":1}`, At: time.Unix(1, 2)}}
	client, _ := serveStreams(t, f, 0)
	got, err := all(client.StreamEvents(context.Background(), &runnerv1.StreamEventsRequest{
		Since: 5, Filters: []*runnerv1.EventFilter{{Key: "reason", Values: []string{"a", "b"}}, {Key: "type"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := []*runnerv1.StreamEventsResponse{{Event: &runnerv1.StreamEventsResponse_Data{
		Data: &runnerv1.RunnerEventData{Json: `{"a":1}`, Ts: &timestamppb.Timestamp{Seconds: 1, Nanos: 2}},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asked := workload.EventRequest{Since: time.Unix(5, 0), Filters: []workload.EventFilter{{Field: "reason", Values: []string{"a", "b"}}, {Field: "type"}}}
	if diff := cmp.Diff(asked, <-f.eventRequests); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
}
