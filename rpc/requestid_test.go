package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// ids are those that a line of the log has.
type ids struct {
	Request   string `json:"request_id"`
	Exec      string `json:"exec_request_id"`
	Execution string `json:"execution"`
}

func idsOf(t *testing.T, log *logBuffer) ids {
	t.Helper()
	var got ids
	if text := log.String(); strings.Count(text, "\n") != 1 || json.Unmarshal([]byte(text), &got) != nil {
		t.Fatalf("the log is not one line:\n%s", text)
	}
	return got
}

// TestRequestID: the caller's id, or one of its own, is in the answer's header and in
// the line of each call, whatever comes of it.
func TestRequestID(t *testing.T) {
	calls := map[string]func(context.Context, runnerv1.RunnerServiceClient) metadata.MD{
		"a message": func(ctx context.Context, client runnerv1.RunnerServiceClient) (header metadata.MD) {
			if _, err := client.Ready(ctx, &runnerv1.ReadyRequest{}, grpc.Header(&header)); err != nil {
				t.Error(err)
			}
			return header
		},
		"an error": func(ctx context.Context, client runnerv1.RunnerServiceClient) (header metadata.MD) {
			if _, err := client.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{}, grpc.Header(&header)); err == nil {
				t.Error("there is a workload")
			}
			return header
		},
		"a stream": func(ctx context.Context, client runnerv1.RunnerServiceClient) metadata.MD {
			stream, err := client.StreamEvents(ctx, &runnerv1.StreamEventsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err == nil {
				t.Error("there are events")
			}
			header, err := stream.Header()
			if err != nil {
				t.Error(err)
			}
			return header
		},
	}
	for given, kept := range map[string]bool{
		"": false, "of-the-caller": true, "a b=\"c\"": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false,
	} {
		for name, call := range calls {
			t.Run(name+" "+given, func(t *testing.T) {
				client, log, stop := serve(t, &fake{})
				ctx := t.Context()
				if given != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", given, "x-request-id", "another")
				}
				header := call(ctx, client).Get("x-request-id")
				stop()
				if len(header) != 1 {
					t.Fatalf("the header is %q", header)
				}
				if _, err := uuid.Parse(header[0]); kept && header[0] != given || !kept && err != nil {
					t.Errorf("the id is %q", header[0])
				}
				if diff := cmp.Diff(ids{Request: header[0]}, idsOf(t, log)); diff != "" {
					t.Errorf("the line (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestRequestIDsDiffer: those that are made tell calls apart.
func TestRequestIDsDiffer(t *testing.T) {
	client, _, _ := serve(t, &fake{})
	seen := map[string]bool{}
	for range 3 {
		var header metadata.MD
		if _, err := client.Ready(t.Context(), &runnerv1.ReadyRequest{}, grpc.Header(&header)); err != nil {
			t.Fatal(err)
		}
		seen[strings.Join(header.Get(RequestIDHeader), ",")] = true
	}
	if len(seen) != 3 {
		t.Errorf("three calls have %v", seen)
	}
}

// TestIsRequestID has what no client of ours could send.
func TestIsRequestID(t *testing.T) {
	for s, want := range map[string]bool{"": false, " ": true, "~": true, "a\nb": false, "a\tb": false, "\x7f": false, "é": false, "\xff": false, "a\x00": false} {
		if got := isRequestID(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// TestExecIDs: the line of an Exec has the id of its start message, if that is one,
// and that of the command, by which lines about the command are found.
func TestExecIDs(t *testing.T) {
	for name, test := range map[string]struct {
		given string
		err   error
		want  ids
	}{
		"started":     {given: "turn-7", want: ids{Exec: "turn-7", Execution: "x"}},
		"no id":       {want: ids{Execution: "x"}},
		"no such id":  {given: "turn\n7", want: ids{Execution: "x"}},
		"not started": {given: "turn-7", err: workload.Errorf(workload.Unavailable, "exec_start_failed", "x"), want: ids{Exec: "turn-7"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, log, stop := serveExec(t, &fakeExecutor{run: func(_ context.Context, _ *workload.Command, s workload.Session) (*workload.Exit, error) {
				if test.err != nil {
					return nil, test.err
				}
				return &workload.Exit{ID: "x", Reason: workload.Completed}, s.Started("x", time.Now())
			}})
			if a := exec(t, client, startOf(id, func(s *runnerv1.ExecStartRequest) { s.RequestId = test.given })); a.err != nil {
				t.Fatal(a.err)
			}
			stop()
			got := idsOf(t, log)
			if got.Request == "" {
				t.Error("the call has no id")
			}
			got.Request = ""
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLinesOfACall: what other parts log with the context of a call has its ids, and
// what they log without has none.
func TestLinesOfACall(t *testing.T) {
	log, lines := logtest.NewNullLogger()
	log.ReplaceHooks(logrus.LevelHooks{logrus.WarnLevel: {LogFields{}, lines}})
	ctx, header := identify(t.Context())
	notesOf(ctx).asks("turn-7")
	log.WithContext(context.WithoutCancel(ctx)).WithError(errors.New("x")).Warn("of a call")
	log.WithContext(t.Context()).Warn("of none")
	log.Warn("without a context")
	var got []logrus.Fields
	for _, line := range lines.AllEntries() {
		delete(line.Data, logrus.ErrorKey)
		got = append(got, line.Data)
	}
	want := []logrus.Fields{{"request_id": header.Get(RequestIDHeader)[0], "exec_request_id": "turn-7"}, {}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
