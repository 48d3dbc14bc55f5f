package applier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agynio/k8s-runner/workload"
)

// secret is an environment value that answers of the API server quote.
const secret = "s3cr3t-value"

// apiError is an answer as the API server gives it.
func apiError(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details}}
}

func forbiddenPod(message string) error {
	return apiError(403, metav1.StatusReasonForbidden, `pods "workload-x" is forbidden: `+message, &metav1.StatusDetails{Name: "workload-x", Kind: "pods"})
}

func transportError(err error) error {
	return &url.Error{Op: "Post", URL: "https://10.0.0.1:443/api/v1/namespaces/workloads/pods?fieldManager=k8s-runner", Err: err}
}

// verdict is what a caller can act on.
type verdict struct {
	Kind  workload.Kind
	Token string
	Retry time.Duration
}

func TestExplain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want verdict
		says string
	}{
		"quota": {
			forbiddenPod(`exceeded quota: compute, requested: pods=1, used: pods=10, limited: pods=10`),
			verdict{workload.ResourceExhausted, "quota_exceeded", 10 * time.Second}, "",
		},
		"Pod Security": {
			forbiddenPod(`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false)`),
			verdict{workload.FailedPrecondition, "pod_security_denied", 0}, "",
		},
		"RBAC": {
			apiError(403, metav1.StatusReasonForbidden, `pods is forbidden: User "system:serviceaccount:runner:runner" cannot create resource "pods" in API group "" in the namespace "workloads"`, &metav1.StatusDetails{Kind: "pods"}),
			verdict{workload.PermissionDenied, "runner_not_allowed", 0}, "",
		},
		"a webhook's denial": {
			apiError(403, metav1.StatusReasonForbidden, `admission webhook "policy.example.com" denied the request: env TOKEN is `+secret, nil),
			verdict{workload.FailedPrecondition, "admission_denied", 0}, "policy.example.com",
		},
		"a webhook that talks of quotas": {
			apiError(403, metav1.StatusReasonForbidden, `admission webhook "policy.example.com" denied the request: `+secret+` exceeded quota: and cannot run, violates PodSecurity`, nil),
			verdict{workload.FailedPrecondition, "admission_denied", 0}, "policy.example.com",
		},
		"a webhook's verdict with a code of its own": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: `admission webhook "policy.example" denied the request: ` + secret}},
			verdict{workload.FailedPrecondition, "admission_denied", 0}, "policy.example",
		},
		"a conflict on the quota (C29)": {
			apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "compute", errors.New("the object has been modified")),
			verdict{workload.Unavailable, "changed_meanwhile", time.Second}, "",
		},
		"an invalid object": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "workload-x", field.ErrorList{
				field.Invalid(field.NewPath("spec", "containers").Index(0).Child("env").Index(0).Child("name"), secret, "a variable that is "+secret),
				field.Forbidden(field.NewPath("spec"), "pod updates may not change fields: "+secret),
			}),
			verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}, "spec.containers[0].env[0].name, spec",
		},
		"invalid without causes": {
			apiError(422, metav1.StatusReasonInvalid, secret, nil),
			verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}, "the object",
		},
		"no namespace": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "workloads"),
			verdict{workload.FailedPrecondition, "namespace_missing", 0}, "workloads",
		},
		"gone in between": {
			apierrors.NewNotFound(pods, "workload-x"),
			verdict{workload.Unavailable, "changed_meanwhile", time.Second}, "",
		},
		"no credential": {
			apierrors.NewUnauthorized(secret),
			verdict{workload.Unavailable, "runner_credential_rejected", 0}, "",
		},
		"too many requests": {
			apierrors.NewTooManyRequests(secret, 7),
			verdict{workload.Unavailable, "kubernetes_unavailable", 7 * time.Second}, "",
		},
		"a webhook that does not answer (C32)": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example.com": failed to call webhook: Post "https://policy/?timeout=10s": context deadline exceeded`)),
			verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, "",
		},
		"an internal error": {
			apierrors.NewInternalError(errors.New("etcd: " + secret)),
			verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, "",
		},
		"500 without a reason":      {apiError(500, "", `failed to create typed patch object: .env: duplicate entries `+secret, nil), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"a time-out of the server":  {apierrors.NewServerTimeout(pods, "create", 3), verdict{workload.Unavailable, "kubernetes_unavailable", 3 * time.Second}, ""},
		"a time-out":                {apierrors.NewTimeoutError(secret, 0), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"unavailable":               {apierrors.NewServiceUnavailable(secret), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"a proxy's 502":             {apierrors.NewGenericServerResponse(502, "create", pods, "workload-x", secret, 0, true), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"too large":                 {apierrors.NewRequestEntityTooLargeError(secret), verdict{workload.ResourceExhausted, "object_too_large", 0}, ""},
		"too large for etcd":        {apiError(500, "", "etcdserver: request is too large", nil), verdict{workload.ResourceExhausted, "object_too_large", 0}, ""},
		"too large for its client":  {apiError(500, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2307605 vs. 2097152)", nil), verdict{workload.ResourceExhausted, "object_too_large", 0}, ""},
		"connection refused":        {transportError(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"connection reset":          {transportError(&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"an answer that is cut off": {errCutOff, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"an answer without an end":  {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"a broken stream":           {errors.New("stream error when reading response body, may be caused by closed connection. Please retry. Original error: stream error: stream ID 7; INTERNAL_ERROR"), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"a lost connection":         {transportError(io.ErrUnexpectedEOF), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
		"no such host":              {transportError(&net.DNSError{Err: "no such host", Name: "kubernetes"}), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
				got := (&Applier{namespace: "workloads"}).explain(err, "starting workload", "workload-x")
				var e *workload.Error
				if !errors.As(got, &e) {
					t.Fatalf("it is %v", got)
				}
				if diff := cmp.Diff(c.want, verdict{e.Kind, e.Token, e.RetryAfter}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if !strings.Contains(e.Message, "starting workload workload-x: ") || !strings.Contains(e.Message, c.says) {
					t.Errorf("the message is %q", e.Message)
				}
				if e.Err == nil {
					t.Error("the log has no cause")
				}
				wantNoSecret(t, got)
			}
		})
	}
}

// wantNoSecret looks at every depth of err.
func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
			t.Errorf("the secret is in %#v", err)
		}
	}
}

// TestExplainKeepsWhatTheOperatorNeeds: the cause names limits, rules and
// webhooks.
func TestExplainKeepsWhatTheOperatorNeeds(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{forbiddenPod(`exceeded quota: compute, requested: pods=1`), "exceeded quota: compute, requested: pods=1"},
		{forbiddenPod(`violates PodSecurity "restricted:latest": runAsNonRoot != true`), "runAsNonRoot != true"},
		{apiError(403, metav1.StatusReasonForbidden, `pods is forbidden: User "u" cannot create resource "pods"`, nil), `User "u" cannot create resource "pods"`},
		{apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example.com": EOF`)), "policy.example.com"},
		{apierrors.NewServiceUnavailable("x"), "503"},
		{transportError(syscall.ECONNREFUSED), "connection refused"},
	} {
		var e *workload.Error
		if err := (&Applier{}).explain(c.err, "starting", "x"); !errors.As(err, &e) || !strings.Contains(e.Err.Error(), c.want) {
			t.Errorf("of %v the log has %v", c.err, e.Err)
		}
	}
}

func TestExplainOthers(t *testing.T) {
	a := &Applier{}
	if err := a.explain(nil, "starting", "x"); err != nil {
		t.Errorf("no error is %v", err)
	}
	for name, c := range map[string]struct{ err, want error }{
		"a deadline":        {transportError(context.DeadlineExceeded), context.DeadlineExceeded},
		"a caller who left": {transportError(context.Canceled), context.Canceled},
		"the rate limiter":  {errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline"), context.DeadlineExceeded},
		"an unknown answer": {apiError(418, "", secret, nil), nil},
		"a bad request":     {apierrors.NewBadRequest(secret), nil},
		"its words quoted":  {apierrors.NewBadRequest("would exceed context deadline"), nil},
		"another error":     {errors.New("something else"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := a.explain(c.err, "starting", "x")
			var e *workload.Error
			if errors.As(got, &e) || got == nil || errors.Is(got, context.DeadlineExceeded) != errors.Is(c.want, context.DeadlineExceeded) || (c.want != nil && !errors.Is(got, c.want)) {
				t.Errorf("it is %#v", got)
			}
			wantNoSecret(t, got)
		})
	}
}
