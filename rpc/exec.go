package rpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// Executor runs commands in containers.
type Executor interface {
	// Run runs a command until it ends. Its error is one from before the start.
	Run(ctx context.Context, command *workload.Command, session workload.Session) (*workload.Exit, error)
	// Cancel ends the command that was started as id, and reports whether there was
	// one. force kills its processes.
	Cancel(ctx context.Context, id string, force bool) bool
}

// Exec runs a command. What goes wrong before it starts is an ExecError.
func (s *Server) Exec(stream runnerv1.RunnerService_ExecServer) error {
	if s.executor == nil {
		return s.UnimplementedRunnerServiceServer.Exec(stream)
	}
	command, err := s.firstMessage(stream)
	if err != nil {
		return sendExecError(stream, err)
	}
	ctx, leave, err := s.streams.enter(stream.Context(), command.Target.ID)
	if err != nil {
		return sendExecError(stream, err)
	}
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	session := newExecSession(stream)
	// The last Recv ends when the handler returns, so nobody can wait for it here.
	go session.receive(ctx, lost)
	exit, err := s.executor.Run(ctx, command, session)
	leave()
	if err != nil {
		return sendExecError(stream, err)
	}
	return sendExit(stream, exit)
}

// firstMessage reads the command. An error of the stream itself is returned as it
// is.
func (s *Server) firstMessage(stream runnerv1.RunnerService_ExecServer) (*workload.Command, error) {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	start := first.GetStart()
	if start == nil {
		return nil, workload.Errorf(workload.InvalidArgument, "exec_start_required", "the first message must be start")
	}
	notesOf(stream.Context()).asks(start.GetRequestId())
	target, err := s.execTarget(start.GetTargetId())
	if err != nil {
		return nil, err
	}
	return readCommand(start, target)
}

// CancelExecution ends a command.
func (s *Server) CancelExecution(ctx context.Context, req *runnerv1.CancelExecutionRequest) (*runnerv1.CancelExecutionResponse, error) {
	if s.executor == nil {
		return s.UnimplementedRunnerServiceServer.CancelExecution(ctx, req)
	}
	return &runnerv1.CancelExecutionResponse{Cancelled: s.executor.Cancel(ctx, req.GetExecutionId(), req.GetForce())}, nil
}

func sendExecError(stream runnerv1.RunnerService_ExecServer, err error) error {
	var known *workload.Error
	if !errors.As(err, &known) {
		return err
	}
	return stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Error{Error: &runnerv1.ExecError{
		Code: known.Token, Message: known.Message, Retryable: known.RetryAfter > 0,
	}}})
}

// ExitCauseTrailer is where the trailer of Exec says why a command ended, for people:
// the reason in the contract is one of five.
const ExitCauseTrailer = "k8s-runner-exit-cause"

func sendExit(stream runnerv1.RunnerService_ExecServer, exit *workload.Exit) error {
	if exit.Cause != "" {
		stream.SetTrailer(metadata.Pairs(ExitCauseTrailer, printable(exit.Cause)))
	}
	return stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Exit{Exit: &runnerv1.ExecExit{
		ExecutionId: exit.ID, ExitCode: exit.Code, Killed: exit.Killed, Reason: exitReason(exit.Reason),
		StdoutTail: exit.Stdout, StderrTail: exit.Stderr, FinishedAt: timestamppb.New(exit.At),
	}}})
}

// printable is s as a header can hold it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, cut(s, maxMessage))
}

func exitReason(r workload.ExitReason) runnerv1.ExecExitReason {
	switch r {
	case workload.Completed:
		return runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED
	case workload.TimedOut:
		return runnerv1.ExecExitReason_EXEC_EXIT_REASON_TIMEOUT
	case workload.IdledOut:
		return runnerv1.ExecExitReason_EXEC_EXIT_REASON_IDLE_TIMEOUT
	case workload.Cancelled:
		return runnerv1.ExecExitReason_EXEC_EXIT_REASON_CANCELLED
	case workload.RunnerError:
	}
	return runnerv1.ExecExitReason_EXEC_EXIT_REASON_RUNNER_ERROR
}

// Started implements workload.Session.
func (x *execSession) Started(id string, at time.Time) error {
	notesOf(x.stream.Context()).runs(id)
	return x.stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Started{Started: &runnerv1.ExecStarted{
		ExecutionId: id, StartedAt: timestamppb.New(at),
	}}})
}

// maxOutput is the most that one message carries, in bytes. With what is around it,
// it fits gRPC's buffers of 32 KiB: the next larger ones have 1 MiB, which is cleared
// for each message.
const maxOutput = 32<<10 - 64

// Output implements workload.Session.
func (x *execSession) Output(from workload.Stream, data []byte) error {
	for piece := range slices.Chunk(data, maxOutput) {
		if err := x.output(from, piece); err != nil {
			return err
		}
	}
	return nil
}

func (x *execSession) output(from workload.Stream, data []byte) error {
	x.sent[from]++
	output := &runnerv1.ExecOutput{Seq: x.sent[from], Data: data, Ts: timestamppb.Now()}
	if from == workload.Stderr {
		return x.stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Stderr{Stderr: output}})
	}
	return x.stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Stdout{Stdout: output}})
}
