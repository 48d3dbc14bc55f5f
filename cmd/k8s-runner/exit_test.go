package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/agynio/k8s-runner/workload"
)

// called is the error of a call to which a server answered with an error.
func called(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	return &callError{
		status: status.Convert(fail(code, message, details...)), to: endpoint{address: "runner:1"}, timeout: 30 * time.Second,
	}
}

func TestExitCode(t *testing.T) {
	plain := errors.New("x")
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"any", plain, exitError},
		{"usage", usage(&cobra.Command{Use: "x"}, plain), exitUsage},
		{"several mistakes of usage", usage(&cobra.Command{Use: "x"}, errors.Join(plain, plain)), exitUsage},
		{"no match for a prefix", workload.NoSuchWorkload("x"), exitNotFound},
		{"time-out of waiting", fmt.Errorf("waiting: %w", context.DeadlineExceeded), exitUnavailable},
		{"NotFound", called(codes.NotFound, ""), exitNotFound},
		{"NotFound, wrapped", fmt.Errorf("stopping x: %w", called(codes.NotFound, "")), exitNotFound},
		{"InvalidArgument", called(codes.InvalidArgument, ""), exitInvalid},
		{"AlreadyExists", called(codes.AlreadyExists, ""), exitConflict},
		{"FailedPrecondition", called(codes.FailedPrecondition, ""), exitConflict},
		{"Aborted", called(codes.Aborted, ""), exitConflict},
		{"Unavailable", called(codes.Unavailable, ""), exitUnavailable},
		{"DeadlineExceeded", called(codes.DeadlineExceeded, ""), exitUnavailable},
		{"ResourceExhausted", called(codes.ResourceExhausted, ""), exitUnavailable},
		{"Internal", called(codes.Internal, ""), exitError},
		{"Canceled", called(codes.Canceled, ""), exitError},
		{"several alike", errors.Join(called(codes.NotFound, ""), workload.NoSuchWorkload("x")), exitNotFound},
		{"several unlike", errors.Join(called(codes.NotFound, ""), plain), exitError},
		{"a command's own", &commandError{code: 7}, 7},
		{"a command's own goes before others", errors.Join(&commandError{code: 7}, plain), 7},
		{"a command that was not run", ofCommand(called(codes.NotFound, "")), exitNotRun},
		{"a command that was not waited for", ofCommand(fmt.Errorf("waiting: %w", context.Canceled)), exitInterrupted},
		{"a command that nobody called", ofCommand(called(codes.Canceled, "")), exitInterrupted},
		{"a mistake in a command's line", ofCommand(usage(&cobra.Command{Use: "x"}, plain)), exitUsage},
		{"several, joined twice", errors.Join(errors.Join(called(codes.NotFound, ""), called(codes.NotFound, "")), nil), exitNotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := exitCode(test.err); got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
}

// TestReport checks what users read; it is the product here.
func TestReport(t *testing.T) {
	info := &errdetails.ErrorInfo{Reason: "TOKEN"}
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"the runner's words", called(codes.NotFound, "token: words", info), []string{"k8s-runner: token: words"}},
		{
			"what was being done", fmt.Errorf("stopping x: %w", called(codes.NotFound, "token: words", info)),
			[]string{"k8s-runner: stopping x: token: words"},
		},
		{
			"when to try again", called(codes.Unavailable, "token: words", info, &errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)}),
			[]string{"k8s-runner: token: words; try again in 1.5s"},
		},
		{
			"fields at fault", called(codes.InvalidArgument, "token: a: x; b[0].c: y", info,
				&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
					{Field: "a", Reason: "TOKEN", Description: "x"}, {Field: "b[0].c", Reason: "OTHER_TOKEN", Description: "y\n\x1b[2J"},
				}}),
			[]string{
				"k8s-runner: the request is invalid:",
				"  FIELD    ERROR         MESSAGE",
				"  a        token         x",
				"  b[0].c   other_token   y  [2J",
			},
		},
		{
			"several", errors.Join(errors.New("a"), errors.New("b")),
			[]string{"k8s-runner: a", "k8s-runner: b"},
		},
		{
			"a command's own end, and more", errors.Join(&commandError{code: 7}, errors.New("b")),
			[]string{"k8s-runner: b"},
		},
		{
			"nobody there", called(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`),
			[]string{
				"k8s-runner: no runner answers at runner:1: dial tcp 127.0.0.1:1: connect: connection refused",
				"Start one with 'k8s-runner serve', or say where it is with --address or RUNNER_ADDRESS.",
			},
		},
		{"time-out", called(codes.DeadlineExceeded, "context deadline exceeded"), []string{"k8s-runner: no answer from runner:1 within 30s (--timeout)"}},
		{"interrupt", called(codes.Canceled, "context canceled"), []string{"k8s-runner: interrupted"}},
		{
			"something else listens", called(codes.Unimplemented, "unknown service"),
			[]string{"k8s-runner: the server at runner:1 is no runner, or one that lacks this call: unknown service"},
		},
		{"no details", called(codes.Internal, "words"), []string{"k8s-runner: Internal: words"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(test.want, "\n")+"\n", report(test.err)); diff != "" {
				t.Errorf("the report differs (-want +got)\n%s", diff)
			}
		})
	}
}

// TestInternalErrorsHaveTheID by which their cause is found in the runner's log, and
// others do not need it.
func TestInternalErrorsHaveTheID(t *testing.T) {
	for code, want := range map[codes.Code]bool{codes.Internal: true, codes.NotFound: false} {
		header, failure := metadata.Pairs("x-request-id", "id-7"), fail(code, "token: words", &errdetails.ErrorInfo{Reason: "TOKEN"})
		_, address, stop, err := newFakeRunner(false,
			grpc.UnaryInterceptor(func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
				if err := grpc.SetHeader(ctx, header); err != nil {
					return nil, err
				}
				return nil, failure
			}),
			grpc.StreamInterceptor(func(_ any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
				if err := stream.SetHeader(header); err != nil {
					return err
				}
				return failure
			}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		for _, command := range []string{"ps", "events"} {
			root := newRoot()
			root.SetArgs([]string{command, "--address", address})
			err := root.ExecuteContext(t.Context())
			if status.Code(err) != code || strings.Contains(report(err), "token: words (request_id id-7)") != want {
				t.Errorf("%s: %s: it says %v", command, code, err)
			}
		}
	}
}
