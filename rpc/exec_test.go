package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/agynio/k8s-runner/metrics"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// fakeExecutor runs commands as a test says.
type fakeExecutor struct {
	run    func(ctx context.Context, command *workload.Command, session workload.Session) (*workload.Exit, error)
	cancel func(id string, force bool) bool
}

func (f *fakeExecutor) Run(ctx context.Context, command *workload.Command, session workload.Session) (*workload.Exit, error) {
	return f.run(ctx, command, session)
}

func (f *fakeExecutor) Cancel(_ context.Context, id string, force bool) bool {
	return f.cancel(id, force)
}

// serveExec serves an executor, and a workload with two containers.
func serveExec(t *testing.T, e *fakeExecutor) (client runnerv1.RunnerServiceClient, log *logBuffer, stop func()) {
	t.Helper()
	m, err := metrics.New()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{states: map[string]*workload.State{id: twoContainers()}}
	conn, log, stop := connectTo(t, NewServer(Parts{Workloads: f, Executor: e, MaxArchive: maxArchive}), NewOperator(), m.Calls)
	return runnerv1.NewRunnerServiceClient(conn), log, stop
}

func twoContainers() *workload.State {
	return &workload.State{ID: id, UID: "uid", Containers: []workload.ContainerState{
		{Name: "first", Role: workload.RoleMain}, {Name: "proxy", Role: workload.RoleSidecar},
	}}
}

// answers is what came of an Exec: its events without their times, the trailer with
// the cause, and the error of the call.
type answers struct {
	events []*runnerv1.ExecResponse
	cause  []string
	err    error
}

// exec sends messages, half-closes, and reads to the end.
func exec(t *testing.T, client runnerv1.RunnerServiceClient, messages ...*runnerv1.ExecRequest) (a answers) {
	t.Helper()
	stream, err := client.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range messages {
		if err := stream.Send(message); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			a.cause = stream.Trailer().Get("k8s-runner-exit-cause")
			if !errors.Is(err, io.EOF) {
				a.err = err
			}
			return a
		}
		a.events = append(a.events, event)
	}
}

func startOf(target string, change ...func(*runnerv1.ExecStartRequest)) *runnerv1.ExecRequest {
	start := &runnerv1.ExecStartRequest{TargetId: target, CommandArgv: []string{"true"}, Options: &runnerv1.ExecOptions{}}
	for _, c := range change {
		c(start)
	}
	return &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Start{Start: start}}
}

// TestExecEvents: the start comes before output, the exit last, and each stream is
// counted by itself.
func TestExecEvents(t *testing.T) {
	at := time.Unix(1700000000, 5).UTC()
	var got *workload.Command
	client, log, stop := serveExec(t, &fakeExecutor{run: func(_ context.Context, c *workload.Command, s workload.Session) (*workload.Exit, error) {
		got = c
		return &workload.Exit{ID: "x", Reason: workload.Completed, Code: 7, Killed: true, Stdout: []byte("ac"), Stderr: []byte("b"), At: at}, errors.Join(
			s.Started("x", at), s.Output(workload.Stdout, []byte("a")), s.Output(workload.Stderr, []byte("b")), s.Output(workload.Stdout, []byte("c")),
		)
	}})
	a := exec(t, client, startOf(id, func(s *runnerv1.ExecStartRequest) {
		s.Options.Env = []*runnerv1.EnvVar{{Name: "TOKEN", Value: secret}}
	}))
	output := func(seq uint64, data string) *runnerv1.ExecOutput {
		return &runnerv1.ExecOutput{Seq: seq, Data: []byte(data)}
	}
	want := []*runnerv1.ExecResponse{
		{Event: &runnerv1.ExecResponse_Started{Started: &runnerv1.ExecStarted{ExecutionId: "x", StartedAt: timestamppb.New(at)}}},
		{Event: &runnerv1.ExecResponse_Stdout{Stdout: output(1, "a")}},
		{Event: &runnerv1.ExecResponse_Stderr{Stderr: output(1, "b")}},
		{Event: &runnerv1.ExecResponse_Stdout{Stdout: output(2, "c")}},
		{Event: &runnerv1.ExecResponse_Exit{Exit: &runnerv1.ExecExit{
			ExecutionId: "x", ExitCode: 7, Killed: true, Reason: runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED,
			StdoutTail: []byte("ac"), StderrTail: []byte("b"), FinishedAt: timestamppb.New(at),
		}}},
	}
	if a.err != nil || a.cause != nil {
		t.Errorf("error %v, cause %q", a.err, a.cause)
	}
	if diff := cmp.Diff(want, a.events, protocmp.Transform(), protocmp.IgnoreFields(&runnerv1.ExecOutput{}, "ts")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, event := range a.events[1:4] {
		now := event.GetStdout().GetTs()
		if event.GetStderr() != nil {
			now = event.GetStderr().GetTs()
		}
		if age := time.Since(now.AsTime()); age < 0 || age > time.Minute {
			t.Errorf("output is %s old", age)
		}
	}
	if target := (workload.Target{ID: id, UID: "uid", Container: "first"}); got.Target != target {
		t.Errorf("the target is %v", got.Target)
	}
	stop()
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"grpc.method":"Exec"`) || strings.Contains(text, secret) {
		t.Errorf("the log has\n%s", text)
	}
}

// TestExecFailures: an executor's error is an event, unless nobody expected it.
func TestExecFailures(t *testing.T) {
	failed := func(retryable bool) *runnerv1.ExecError {
		return &runnerv1.ExecError{Code: "some_token", Message: "what to do", Retryable: retryable}
	}
	domain := workload.Errorf(workload.Unavailable, "some_token", "what to do").Because(errors.New(secret))
	for name, c := range map[string]struct {
		err  error
		want *runnerv1.ExecError
		code codes.Code
	}{
		"known":             {domain, failed(false), codes.OK},
		"known, in another": {errors.Join(errors.New("x"), domain), failed(false), codes.OK},
		"retryable":         {workload.Errorf(workload.ResourceExhausted, "some_token", "what to do").Retry(time.Second), failed(true), codes.OK},
		"any other":         {errors.New(secret), nil, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, _ := serveExec(t, &fakeExecutor{run: func(context.Context, *workload.Command, workload.Session) (*workload.Exit, error) {
				return nil, c.err
			}})
			a := exec(t, client, startOf(id))
			if c.want == nil {
				if len(a.events) > 0 || answerOf(t, a.err).Code != c.code || strings.Contains(a.err.Error(), secret) {
					t.Errorf("error %v, events %v", a.err, a.events)
				}
				return
			}
			if a.err != nil || len(a.events) != 1 {
				t.Fatalf("error %v, events %v", a.err, a.events)
			}
			if diff := cmp.Diff(c.want, a.events[0].GetError(), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestExecExits: the reasons of the domain are those of the contract, and the cause
// can be a header.
func TestExecExits(t *testing.T) {
	for _, c := range []struct {
		exit   workload.Exit
		reason runnerv1.ExecExitReason
		cause  []string
	}{
		{workload.Exit{Reason: workload.Completed}, runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED, nil},
		{workload.Exit{Reason: workload.TimedOut, Cause: "its time was up"}, runnerv1.ExecExitReason_EXEC_EXIT_REASON_TIMEOUT, []string{"its time was up"}},
		{workload.Exit{Reason: workload.IdledOut, Cause: "x"}, runnerv1.ExecExitReason_EXEC_EXIT_REASON_IDLE_TIMEOUT, []string{"x"}},
		{workload.Exit{Reason: workload.Cancelled, Cause: "x"}, runnerv1.ExecExitReason_EXEC_EXIT_REASON_CANCELLED, []string{"x"}},
		{workload.Exit{Reason: workload.RunnerError, Code: -1, Cause: "naïve\n\x00x"}, runnerv1.ExecExitReason_EXEC_EXIT_REASON_RUNNER_ERROR, []string{"na ve  x"}},
		{workload.Exit{Reason: 1000, Cause: "\xff"}, runnerv1.ExecExitReason_EXEC_EXIT_REASON_RUNNER_ERROR, []string{" "}},
		{workload.Exit{Reason: workload.RunnerError, Cause: strings.Repeat("x", 100_000)}, runnerv1.ExecExitReason_EXEC_EXIT_REASON_RUNNER_ERROR, []string{strings.Repeat("x", 1024) + " "}},
	} {
		client, _, stop := serveExec(t, &fakeExecutor{run: func(context.Context, *workload.Command, workload.Session) (*workload.Exit, error) {
			return &c.exit, nil
		}})
		a := exec(t, client, startOf(id))
		if a.err != nil || len(a.events) != 1 {
			t.Fatalf("error %v, events %v", a.err, a.events)
		}
		if got := a.events[0].GetExit(); got.GetReason() != c.reason || got.GetExitCode() != c.exit.Code {
			t.Errorf("%v is %v", c.exit, got)
		}
		if diff := cmp.Diff(c.cause, a.cause); diff != "" {
			t.Errorf("the cause (-want +got)\n%s", diff)
		}
		stop()
	}
}

func TestCancelExecution(t *testing.T) {
	var got []string
	client, _, _ := serveExec(t, &fakeExecutor{cancel: func(id string, force bool) bool {
		got = append(got, id, map[bool]string{true: "by force", false: "gently"}[force])
		return id == "x"
	}})
	for _, c := range []struct {
		request *runnerv1.CancelExecutionRequest
		want    bool
	}{
		{&runnerv1.CancelExecutionRequest{ExecutionId: "x", Force: true}, true},
		{&runnerv1.CancelExecutionRequest{ExecutionId: "y"}, false},
		{&runnerv1.CancelExecutionRequest{}, false},
	} {
		answer, err := client.CancelExecution(t.Context(), c.request)
		if err != nil || !proto.Equal(answer, &runnerv1.CancelExecutionResponse{Cancelled: c.want}) {
			t.Errorf("%v: %v (%v)", c.request, answer, err)
		}
	}
	if diff := cmp.Diff([]string{"x", "by force", "y", "gently", "", "gently"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestExecLargeOutput: a large piece comes in several that gRPC's buffers hold, each
// counted, and nothing of it is lost.
func TestExecLargeOutput(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 3*maxOutput/16)
	client, _, _ := serveExec(t, &fakeExecutor{run: func(_ context.Context, _ *workload.Command, s workload.Session) (*workload.Exit, error) {
		return &workload.Exit{Reason: workload.Completed}, errors.Join(s.Started("x", time.Now()), s.Output(workload.Stdout, data))
	}})
	var got []byte
	var seq uint64
	for _, event := range exec(t, client, startOf(id)).events {
		output := event.GetStdout()
		if output == nil {
			continue
		}
		if seq++; output.GetSeq() != seq || proto.Size(event) > 32<<10 {
			t.Errorf("piece %d has seq %d and %d bytes", seq, output.GetSeq(), proto.Size(event))
		}
		got = append(got, output.GetData()...)
	}
	if !bytes.Equal(got, data) || seq < 3 {
		t.Errorf("%d bytes of %d come, in %d pieces", len(got), len(data), seq)
	}
}
