package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
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
		late := workload.Errorf(workload.Unavailable, "deadline_exceeded", "the call took longer than its deadline")
		return &translated{status: statusOf(codes.DeadlineExceeded, late), cause: err}
	case errors.Is(err, context.Canceled):
		gone := workload.Errorf(workload.Aborted, "cancelled", "the caller went away")
		return &translated{status: statusOf(codes.Canceled, gone), cause: err}
	}
	if s, isStatus := status.FromError(err); isStatus && s.Code() == codes.Unimplemented {
		return translate(workload.Errorf(workload.Unimplemented, "rpc_unimplemented", "this version of the runner does not have it: %s", s.Message()))
	}
	internal := workload.Errorf(workload.Internal, "internal_error", "the runner could not do it; its log has the cause")
	return &translated{status: newStatus(internal), cause: err}
}

// Token returns the stable word that names err to a caller, or "" for nil. There
// are as many as docs/errors.md lists.
func Token(err error) string {
	var told *translated
	if errors.As(translate(err), &told) {
		token, _, _ := strings.Cut(told.status.Message(), ":")
		return token
	}
	return ""
}

func newStatus(e *workload.Error) *status.Status { return statusOf(code(e.Kind), e) }

// Bounds of what a caller is told, in bytes. It travels in a trailer, as message
// and as details, and clients in Java and C take no more than 8 KiB of those.
const (
	maxMessage    = 1 << 10
	maxViolation  = 256
	maxViolations = 3 << 10
)

func statusOf(c codes.Code, e *workload.Error) *status.Status {
	s := status.New(c, cut(e.Error(), maxMessage))
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: strings.ToUpper(e.Token), Domain: errorDomain}}
	if len(e.Violations) > 0 {
		details = append(details, badRequest(e.Violations))
	}
	if e.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	if detailed, err := s.WithDetails(details...); err == nil {
		return detailed
	}
	return s
}

// badRequest lists every field at fault, as far as there is room, and says how
// many more there are.
func badRequest(violations []workload.Violation) *errdetails.BadRequest {
	bad := &errdetails.BadRequest{}
	size := 0
	for i, v := range violations {
		fault := &errdetails.BadRequest_FieldViolation{
			Field: cut(v.Field, maxViolation), Description: cut(v.Message, maxViolation), Reason: strings.ToUpper(v.Token),
		}
		if size += proto.Size(fault); size > maxViolations {
			more := fmt.Sprintf("%d more are wrong than there is room to say", len(violations)-i)
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: "…", Description: more})
			break
		}
		bad.FieldViolations = append(bad.FieldViolations, fault)
	}
	return bad
}

// cut shortens s to a number of bytes, and shows that it did.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
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
