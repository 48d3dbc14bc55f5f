package rpc

import (
	"context"
	"errors"
	"strings"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/agynio/k8s-runner/workload"
)

// errorDomain is the domain of every google.rpc.ErrorInfo of the runner.
const errorDomain = "k8s-runner"

// translated is what a caller gets of an error, together with the cause that
// only the log gets.
type translated struct {
	status *status.Status
	cause  error
}

// GRPCStatus is what goes over the wire.
func (t *translated) GRPCStatus() *status.Status { return t.status }

// Error is the text for the log.
func (t *translated) Error() string {
	if t.cause == nil {
		return t.status.Message()
	}
	return t.status.Message() + ": " + t.cause.Error()
}

func (t *translated) Unwrap() error { return t.cause }

// translate makes a gRPC status of any error of a handler.
func translate(err error) error {
	var domain *workload.Error
	if errors.As(err, &domain) {
		return &translated{status: newStatus(domain), cause: domain.Err}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &translated{status: status.New(codes.DeadlineExceeded, "deadline_exceeded: the call took longer than its deadline"), cause: err}
	case errors.Is(err, context.Canceled):
		return &translated{status: status.New(codes.Canceled, "cancelled: the caller went away"), cause: err}
	}
	if s, isStatus := status.FromError(err); isStatus && s.Code() == codes.Unimplemented {
		return translate(workload.Errorf(workload.Unimplemented, "rpc_unimplemented", "this version of the runner does not have it: %s", s.Message()))
	}
	internal := workload.Errorf(workload.Internal, "internal_error", "the runner could not do it; its log has the cause")
	return &translated{status: newStatus(internal), cause: err}
}

func newStatus(e *workload.Error) *status.Status {
	s := status.New(code(e.Kind), e.Error())
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: strings.ToUpper(e.Token), Domain: errorDomain}}
	if len(e.Violations) > 0 {
		bad := &errdetails.BadRequest{}
		for _, v := range e.Violations {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
				Field: v.Field, Description: v.Message, Reason: strings.ToUpper(v.Token),
			})
		}
		details = append(details, bad)
	}
	if e.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	if detailed, err := s.WithDetails(details...); err == nil {
		return detailed
	}
	return s
}

func code(k workload.Kind) codes.Code {
	switch k {
	case workload.InvalidArgument:
		return codes.InvalidArgument
	case workload.NotFound:
		return codes.NotFound
	case workload.AlreadyExists:
		return codes.AlreadyExists
	case workload.FailedPrecondition:
		return codes.FailedPrecondition
	case workload.PermissionDenied:
		return codes.PermissionDenied
	case workload.ResourceExhausted:
		return codes.ResourceExhausted
	case workload.Aborted:
		return codes.Aborted
	case workload.Unavailable:
		return codes.Unavailable
	case workload.Unimplemented:
		return codes.Unimplemented
	case workload.Internal:
	}
	return codes.Internal
}

// level is how loud the log line of a call is: an error is the runner's or the
// cluster's fault, not a caller's.
func level(c codes.Code) logging.Level {
	switch c {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return logging.LevelError
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.PermissionDenied:
		return logging.LevelWarn
	default:
		return logging.LevelInfo
	}
}

// translateUnary lets handlers return ordinary errors.
func translateUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	return resp, translate(err)
}

func translateStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return translate(handler(srv, stream))
}
