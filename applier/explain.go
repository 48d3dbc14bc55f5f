package applier

import (
	"context"
	"errors"
	"fmt"
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
	case denied(err):
		return fail(workload.FailedPrecondition, "admission_denied", "the admission webhook %s refuses it", webhook(err))
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
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return fail(workload.Unavailable, "changed_meanwhile", "something changed in between; try again").Retry(retryUnavailable)
	case unavailable(err):
		return fail(workload.Unavailable, "kubernetes_unavailable", "the API server cannot answer now").Retry(delay(err))
	case strings.Contains(err.Error(), "would exceed context deadline"): // of the client's rate limiter
		return fmt.Errorf("%s %s: %w", doing, name, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s %s: %w", doing, name, withoutValues(err))
}

type failure func(kind workload.Kind, token, format string, args ...any) *workload.Error

// forbidden tells apart the four reasons for a 403 by the server's words:
// its status has the same code and reason for all of them. The words of a
// policy are its own, and can be those of the others.
func forbidden(err error, fail failure) error {
	message := err.Error()
	switch {
	case strings.Contains(message, " forbidden: exceeded quota"):
		return fail(workload.ResourceExhausted, "quota_exceeded", "the namespace's resource quota is used up").Retry(retryQuota)
	case strings.Contains(message, " forbidden: violates PodSecurity"):
		return fail(workload.FailedPrecondition, "pod_security_denied", "the namespace's Pod Security level does not admit this Pod")
	case strings.Contains(message, ` forbidden: User "`):
		return fail(workload.PermissionDenied, "runner_not_allowed", "the runner's role does not allow it")
	}
	return fail(workload.FailedPrecondition, "admission_denied", "an admission rule of the cluster refuses it")
}

// unavailable reports whether the server, or the way to it, has a fault that
// may pass.
func unavailable(err error) bool {
	var transport *url.Error
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || errors.As(err, &transport)
}

// passing reports whether the same write may succeed a moment later: the fault
// passes, or the server changed something of its own in between, such as the
// use of a quota.
func passing(err error) bool {
	conflict := apierrors.IsConflict(err) && len(conflicting(err)) == 0
	return !denied(err) && !tooLarge(err) && (unavailable(err) || conflict)
}

// delay is when the server asks to be asked again.
func delay(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return retryUnavailable
}

// tooLarge knows what the API server says, and etcd through it.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max")
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

// webhook is the name of the webhook that the server's answer is about, if any.
func webhook(err error) string {
	message := err.Error()
	if name := between(message, `failed calling webhook "`, `"`); name != "" {
		return name
	}
	if denied(err) {
		return between(message, `admission webhook "`, `"`)
	}
	return ""
}

// denied reports whether a webhook said no, with whatever code it chose.
func denied(err error) bool { return strings.Contains(err.Error(), `" denied the request`) }

// between returns what stands between start and end in s.
func between(s, start, end string) string {
	_, s, found := strings.Cut(s, start)
	if !found {
		return ""
	}
	s, _, _ = strings.Cut(s, end)
	return s
}

// withoutValues keeps of an API server's answer its code and reason, and of the
// words those of the server's own checks: these name limits, not values.
func withoutValues(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	answer := fmt.Sprintf("the API server answered %d %s", status.Status().Code, status.Status().Reason)
	if name := webhook(err); name != "" {
		return fmt.Errorf("%s: webhook %s", answer, name)
	}
	for _, start := range [...]string{"exceeded quota: ", "violates PodSecurity ", `User "`} {
		if _, rest, found := strings.Cut(status.Status().Message, " forbidden: "+start); found {
			return fmt.Errorf("%s: %s%s", answer, start, rest)
		}
	}
	return errors.New(answer)
}
