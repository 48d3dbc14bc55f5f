package applier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

// When to try again what the server could not do now.
const (
	retryUnavailable = time.Second
	retryQuota       = 10 * time.Second
)

// explain turns the API server's answer into an error for a caller. It passes
// on no text of the server that may hold values of the object, not even as a
// cause: a rejected Pod is quoted there in full, with its environment.
func (a *Applier) explain(err error, doing, name string) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	fail := func(kind workload.Kind, token, format string, args ...any) *workload.Error {
		return workload.Errorf(kind, token, doing+" "+name+": "+format, args...).Because(withoutValues(err))
	}
	switch {
	case refuser(err) != "":
		return fail(workload.FailedPrecondition, "admission_denied", "%s refuses it", refuser(err))
	case apierrors.IsForbidden(err):
		return forbidden(err, fail)
	case apierrors.IsInvalid(err):
		return fail(workload.FailedPrecondition, "rejected_by_kubernetes", "the API server refuses %s", causes(err))
	case apierrors.IsNotFound(err) && kindOf(err) == "namespaces":
		return fail(workload.FailedPrecondition, "namespace_missing", "the namespace %s does not exist; create it", a.namespace)
	case tooLarge(err):
		return fail(workload.ResourceExhausted, "object_too_large", "it is larger than Kubernetes stores, which is 1.5 MiB")
	case apierrors.IsUnauthorized(err):
		return fail(workload.Unavailable, "runner_credential_rejected", "the API server does not accept the runner's credential")
	case len(conflicting(err)) > 0:
		return fail(workload.Aborted, "field_conflict", "fields of it belong to %s, and stay so", strings.Join(conflicting(err), ", "))
	case errors.Is(err, errReplaced), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return fail(workload.Unavailable, "changed_meanwhile", "something changed in between; try again").Retry(retryUnavailable)
	case unavailable(err):
		return fail(workload.Unavailable, "kubernetes_unavailable", "the API server cannot answer now").Retry(delay(err))
	case said(err) == "" && strings.Contains(err.Error(), "would exceed context deadline"): // of the client's rate limiter
		return fmt.Errorf("%s %s: %w", doing, name, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s %s: %w", doing, name, withoutValues(err))
}

type failure func(kind workload.Kind, token, format string, args ...any) *workload.Error

// unavailable reports whether the server, or the way to it, has a fault that
// may pass.
func unavailable(err error) bool {
	var transport *url.Error
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || errors.As(err, &transport) || cutOff(err)
}

// cutOff reports whether the connection broke in the middle of the answer, which
// client-go has no type for.
func cutOff(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || said(err) == "" && strings.Contains(err.Error(), "error when reading response body")
}

// passing reports whether the same write may succeed a moment later: the fault
// passes, or the server changed something of its own in between, such as the
// use of a quota.
func passing(err error) bool {
	modified := apierrors.IsConflict(err) && len(conflicting(err)) == 0
	return refuser(err) == "" && !tooLarge(err) && (unavailable(err) || modified || settling(err))
}

// delay is when the server asks to be asked again.
func delay(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return retryUnavailable
}

// tooLarge knows what the API server says, and etcd and its client through it.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || strings.HasPrefix(said(err), "etcdserver: request is too large") ||
		strings.HasPrefix(said(err), "rpc error: code = ResourceExhausted desc = trying to send message larger than max")
}

// causes lists the fields that the server found at fault, without its words.
func causes(err error) string {
	var fields []string
	for _, c := range details(err).Causes {
		if c.Field != "" {
			fields = append(fields, c.Field)
		}
	}
	if len(fields) == 0 {
		return "the object"
	}
	return strings.Join(fields, ", ")
}

func kindOf(err error) string { return details(err).Kind }

func details(err error) metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}
	}
	return *status.Status().Details
}

// between returns what stands between start and end in s.
func between(s, start, end string) string {
	_, s, found := strings.Cut(s, start)
	if !found {
		return ""
	}
	s, _, _ = strings.Cut(s, end)
	return s
}

// withoutValues keeps of an API server's answer its code and reason, and who else
// had a part in it.
func withoutValues(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	answer := fmt.Sprintf("the API server answered %d %s", status.Status().Code, status.Status().Reason)
	if by := refuser(err); by != "" {
		return fmt.Errorf("%s: %s refuses it", answer, by)
	}
	if rest, ok := strings.CutPrefix(said(err), `Internal error occurred: failed calling webhook "`); ok {
		name, _, _ := strings.Cut(rest, `"`)
		return fmt.Errorf("%s: the admission webhook %s cannot be asked", answer, name)
	}
	return errors.New(answer)
}
