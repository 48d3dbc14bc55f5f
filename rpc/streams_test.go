package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// TestTooManyStreams of one workload are refused, whatever kind they are; that
// one ends makes room for another.
func TestTooManyStreams(t *testing.T) {
	f := newFakeStreams()
	f.lasts = true
	client, _ := serveStreams(t, f, 2)
	logs := &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, ContainerName: "main"}
	events := &runnerv1.StreamEventsRequest{Filters: []*runnerv1.EventFilter{{Key: "involvedObject.name", Values: []string{"workload-" + id}}}}
	first, endFirst := context.WithCancel(context.Background())
	defer endFirst()
	rest, endRest := context.WithCancel(context.Background())
	defer endRest()
	if _, err := client.StreamWorkloadLogs(first, logs); err != nil {
		t.Fatal(err)
	}
	<-f.logRequests
	if _, err := client.StreamEvents(rest, events); err != nil {
		t.Fatal(err)
	}
	<-f.eventRequests
	_, err := all(client.StreamWorkloadLogs(rest, logs))
	want := answer{Code: codes.ResourceExhausted, Token: "too_many_streams", Reason: "TOO_MANY_STREAMS", Domain: "k8s-runner", Retry: retryStreams}
	if diff := cmp.Diff(want, answerOf(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Other workloads, and streams of none, have room of their own.
	for range 2 {
		if _, err := client.StreamEvents(rest, &runnerv1.StreamEventsRequest{}); err != nil {
			t.Fatal(err)
		}
		<-f.eventRequests
	}
	endFirst()
	waitFor(t, "there is room again", func() bool {
		ctx, cancel := context.WithCancel(rest)
		defer cancel()
		stream, err := client.StreamWorkloadLogs(ctx, logs)
		if err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, 1)
		go func() {
			_, err := stream.Recv()
			refused <- err
		}()
		select {
		case <-f.logRequests:
			cancel()
			<-refused
			return true
		case err := <-refused:
			if status.Code(err) != codes.ResourceExhausted {
				t.Fatal(err)
			}
			return false
		}
	})
}

func waitFor(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in ten seconds it has not come true that %s", what)
		}
	}
}

// TestEndStreams ends those that are there, and refuses those that come.
func TestEndStreams(t *testing.T) {
	f := newFakeStreams()
	f.lasts = true
	client, server := serveStreams(t, f, 0)
	logs, err := client.StreamWorkloadLogs(context.Background(), &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, ContainerName: "main"})
	if err != nil {
		t.Fatal(err)
	}
	events, err := client.StreamEvents(context.Background(), &runnerv1.StreamEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	<-f.logRequests
	<-f.eventRequests
	server.EndStreams()
	_, ofLogs := all(logs, nil)
	_, ofEvents := all(events, nil)
	_, ofLater := all(client.StreamEvents(context.Background(), &runnerv1.StreamEventsRequest{}))
	want := answer{Code: codes.Unavailable, Token: "shutting_down", Reason: "SHUTTING_DOWN", Domain: "k8s-runner", Retry: retryShutdown}
	for name, err := range map[string]error{"logs": ofLogs, "events": ofEvents, "later": ofLater} {
		if diff := cmp.Diff(want, answerOf(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if n := len(server.streams.of) + len(server.streams.cancels); n > 0 {
		t.Errorf("%d stay behind", n)
	}
}

// TestACallerWhoGoes ends his stream, which is not the runner's fault.
func TestACallerWhoGoes(t *testing.T) {
	if got := translate(sent(status.Error(codes.Unavailable, "transport is closing"))); status.Code(got) != codes.Canceled {
		t.Errorf("an error of sending becomes %v", got)
	}
	for name, c := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		code codes.Code
	}{
		"goes": {context.WithCancel, codes.Canceled},
		"has waited long enough": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		}, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreams(0)
			parent, end := c.end(context.Background())
			ctx, leave, err := s.enter(parent, "a")
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
			if name == "goes" {
				end()
			}
			<-ctx.Done()
			end()
			if got := status.Code(translate(context.Cause(ctx))); got != c.code {
				t.Errorf("the code is %v", got)
			}
		})
	}
}

// TestSubject is the workload that a request for events is about.
func TestSubject(t *testing.T) {
	filter := func(field string, values ...string) *workload.EventRequest {
		return &workload.EventRequest{Filters: []workload.EventFilter{{Field: field, Values: values}}}
	}
	for name, c := range map[string]struct {
		req  *workload.EventRequest
		want string
	}{
		"none":         {&workload.EventRequest{}, ""},
		"a Pod":        {filter("involvedObject.name", "workload-"+id), id},
		"two Pods":     {filter("involvedObject.name", "workload-"+id, "workload-b"), ""},
		"another":      {filter("involvedObject.name", "data"), "data"},
		"of no object": {filter("reason", "workload-"+id), ""},
	} {
		if got := subject(c.req); got != c.want {
			t.Errorf("%s: it is %q", name, got)
		}
	}
}
