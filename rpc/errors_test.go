package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/agynio/k8s-runner/workload"
)

// answer is what a caller can read of an error.
type answer struct {
	Code   codes.Code
	Token  string
	Reason string
	Domain string
	Fields []string
	Retry  time.Duration
}

func answerOf(t *testing.T, err error) answer {
	t.Helper()
	s, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v is no status", err)
	}
	token, _, _ := strings.Cut(s.Message(), ":")
	a := answer{Code: s.Code(), Token: token}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			a.Reason, a.Domain = d.GetReason(), d.GetDomain()
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				a.Fields = append(a.Fields, v.GetField()+" "+v.GetReason()+" "+v.GetDescription())
			}
		case *errdetails.RetryInfo:
			a.Retry = d.GetRetryDelay().AsDuration()
		default:
			t.Errorf("an unknown detail: %v", detail)
		}
	}
	return a
}

func TestTranslateKinds(t *testing.T) {
	for kind, code := range map[workload.Kind]codes.Code{
		workload.Internal:           codes.Internal,
		workload.InvalidArgument:    codes.InvalidArgument,
		workload.NotFound:           codes.NotFound,
		workload.AlreadyExists:      codes.AlreadyExists,
		workload.FailedPrecondition: codes.FailedPrecondition,
		workload.PermissionDenied:   codes.PermissionDenied,
		workload.ResourceExhausted:  codes.ResourceExhausted,
		workload.Aborted:            codes.Aborted,
		workload.Unavailable:        codes.Unavailable,
		workload.Unimplemented:      codes.Unimplemented,
		workload.Kind(1000):         codes.Internal,
	} {
		err := translate(workload.Errorf(kind, "some_token", "what to do"))
		want := answer{Code: code, Token: "some_token", Reason: "SOME_TOKEN", Domain: "k8s-runner"}
		if diff := cmp.Diff(want, answerOf(t, err)); diff != "" {
			t.Errorf("kind %d (-want +got):\n%s", kind, diff)
		}
	}
}

func TestTranslateErrors(t *testing.T) {
	domain := func() *workload.Error { return workload.Errorf(workload.Unavailable, "some_token", "what to do") }
	expired, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	internal := answer{Code: codes.Internal, Token: "internal_error", Reason: "INTERNAL_ERROR", Domain: "k8s-runner"}
	some := answer{Code: codes.Unavailable, Token: "some_token", Reason: "SOME_TOKEN", Domain: "k8s-runner"}
	again := some
	again.Retry = 1500 * time.Millisecond
	for name, c := range map[string]struct {
		err  error
		want answer
	}{
		"a domain error":            {domain(), some},
		"a wrapped one":             {fmt.Errorf("doing: %w", domain()), some},
		"one in a list":             {errors.Join(io.EOF, domain()), some},
		"one that helps to retry":   {domain().Retry(1500 * time.Millisecond), again},
		"one because of a deadline": {domain().Because(context.DeadlineExceeded), some},
		"anything else":             {errors.New("s3cr3t-value"), internal},
		"a status of someone else":  {status.Error(codes.NotFound, "s3cr3t-value"), internal},
		"a deadline":                {fmt.Errorf("s3cr3t-value: %w", context.DeadlineExceeded), answer{Code: codes.DeadlineExceeded, Token: "deadline_exceeded", Reason: "DEADLINE_EXCEEDED", Domain: "k8s-runner"}},
		"a context that expired":    {expired.Err(), answer{Code: codes.DeadlineExceeded, Token: "deadline_exceeded", Reason: "DEADLINE_EXCEEDED", Domain: "k8s-runner"}},
		"a caller who left":         {fmt.Errorf("s3cr3t-value: %w", context.Canceled), answer{Code: codes.Canceled, Token: "cancelled", Reason: "CANCELLED", Domain: "k8s-runner"}},
		"an RPC that is not there":  {status.Error(codes.Unimplemented, "method Exec not implemented"), answer{Code: codes.Unimplemented, Token: "rpc_unimplemented", Reason: "RPC_UNIMPLEMENTED", Domain: "k8s-runner"}},
		"violations": {
			workload.Invalid([]workload.Violation{{Field: "main.image", Token: "invalid_image", Message: "is none"}, {Field: "labels[a]", Token: "invalid_label", Message: "too long"}}),
			answer{Code: codes.InvalidArgument, Token: "invalid_image", Reason: "INVALID_IMAGE", Domain: "k8s-runner", Fields: []string{"main.image INVALID_IMAGE is none", "labels[a] INVALID_LABEL too long"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := translate(c.err)
			if diff := cmp.Diff(c.want, answerOf(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s, _ := status.FromError(err); strings.Contains(s.Message(), secret) {
				t.Errorf("the caller is told %q", s.Message())
			}
		})
	}
}

func TestTranslateNothing(t *testing.T) {
	if err := translate(nil); err != nil {
		t.Errorf("no error is %v", err)
	}
}

// TestCausesAreForTheLog: the log has the cause, the caller does not.
func TestCausesAreForTheLog(t *testing.T) {
	for _, err := range []error{
		errors.New("root-of-it"),
		workload.Errorf(workload.Unavailable, "some_token", "what to do").Because(errors.New("root-of-it")),
		fmt.Errorf("doing: %w", workload.Errorf(workload.Internal, "some_token", "what to do").Because(errors.New("root-of-it"))),
	} {
		got := translate(err)
		if s, _ := status.FromError(got); strings.Contains(s.Message(), "root-of-it") || !strings.Contains(got.Error(), "root-of-it") {
			t.Errorf("the caller is told %q, the log %q", s.Message(), got)
		}
	}
}

// TestErrorsFitIntoATrailer: clients in Java and C take 8 KiB of headers, and an
// error is in them twice, as message and, in base64, as details.
func TestErrorsFitIntoATrailer(t *testing.T) {
	const room = 7 << 10
	for name, c := range map[string]struct{ count, length, told int }{
		"few":       {3, 100, 3},
		"a dozen":   {12, 100, 12},
		"many":      {10000, 100, 20},
		"long ones": {3, 1 << 20, 3},
	} {
		var violations []workload.Violation
		for i := range c.count {
			long := strings.Repeat("é", c.length/2)
			violations = append(violations, workload.Violation{Field: fmt.Sprintf("labels[%d]%s", i, long[:c.length/10*2]), Token: "invalid_label", Message: long})
		}
		s, _ := status.FromError(translate(workload.Invalid(violations)))
		details, err := proto.Marshal(s.Proto())
		if err != nil {
			t.Fatal(err)
		}
		if size := len(s.Message()) + len(details)*4/3; size > room {
			t.Errorf("%s: the error takes %d bytes", name, size)
		}
		a := answerOf(t, s.Err())
		told, last := len(a.Fields), a.Fields[len(a.Fields)-1]
		var more int
		if n, _ := fmt.Sscanf(last, "…  %d more are wrong", &more); n == 1 {
			told--
		}
		if told < c.told || told+more != c.count || a.Reason != "INVALID_LABEL" {
			t.Errorf("%s: %d fields are told, and then %q", name, told, last)
		}
	}
}
