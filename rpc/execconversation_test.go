package rpc

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// TestExecConversation: what the caller sends comes to the command while it runs. One
// who goes, or sends what is not taken, ends the command, and not its input.
func TestExecConversation(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(stream runnerv1.RunnerService_ExecClient, leave func()) error
		token string
	}{
		"caller gone": {func(_ runnerv1.RunnerService_ExecClient, leave func()) error {
			leave()
			return nil
		}, ""},
		"message too large": {func(stream runnerv1.RunnerService_ExecClient, _ func()) error {
			return stream.Send(input(strings.Repeat("x", maxRequest), false))
		}, "request_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			client, _, _ := serveExec(t, &fakeExecutor{run: func(ctx context.Context, _ *workload.Command, s workload.Session) (*workload.Exit, error) {
				ended <- echo(ctx, s)
				return &workload.Exit{Reason: workload.Cancelled}, nil
			}})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			stream, err := client.Exec(ctx)
			if err != nil {
				t.Fatal(err)
			}
			wantEcho(t, stream)
			if err := c.end(stream, leave); err != nil {
				t.Fatal(err)
			}
			err = <-ended
			var known *workload.Error
			if errors.Is(err, io.EOF) || errors.As(err, &known) != (c.token != "") || known != nil && known.Token != c.token {
				t.Errorf("the input ended with %v", err)
			}
		})
	}
}

// echo gives the input back until something fails.
func echo(ctx context.Context, s workload.Session) error {
	err := s.Started("x", time.Now())
	for err == nil {
		var data []byte
		if data, err = s.Stdin(ctx); err == nil {
			err = s.Output(workload.Stdout, data)
		}
	}
	return err
}

func wantEcho(t *testing.T, stream runnerv1.RunnerService_ExecClient) {
	t.Helper()
	for _, message := range []*runnerv1.ExecRequest{startOf(id), input("a", false)} {
		if err := stream.Send(message); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []*runnerv1.ExecResponse{
		{Event: &runnerv1.ExecResponse_Started{Started: &runnerv1.ExecStarted{ExecutionId: "x"}}},
		{Event: &runnerv1.ExecResponse_Stdout{Stdout: &runnerv1.ExecOutput{Seq: 1, Data: []byte("a")}}},
	} {
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&runnerv1.ExecStarted{}, "started_at"),
			protocmp.IgnoreFields(&runnerv1.ExecOutput{}, "ts")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
