package applier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/agynio/k8s-runner/workload"
)

// When to try again what the server could not do now.
const (
	retryUnavailable = time.Second
	retryQuota       = 10 * time.Second
)

// explain turns the API server's answer into an error for a caller. It passes
// on no text of the server that may hold values of the object: a rejected Pod
// is quoted there in full, with its environment.
func (a *Applier) explain(err error, doing, name string) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	fail := func(kind workload.Kind, token, format string, args ...any) *workload.Error {
		return workload.Errorf(kind, token, doing+" "+name+": "+format, args...)
	}
	switch {
	case apierrors.IsForbidden(err):
		return forbidden(err, fail)
	case apierrors.IsConflict(err):
		return fail(workload.Aborted, "field_conflict", "another writer owns %s", conflicts(err))
	case apierrors.IsInvalid(err):
		return fail(workload.FailedPrecondition, "rejected_by_kubernetes", "the API server refuses %s", causes(err))
	case apierrors.IsNotFound(err):
		return fail(workload.FailedPrecondition, "namespace_missing", "the namespace %s does not exist; create it", a.namespace)
	case apierrors.IsUnauthorized(err):
		return fail(workload.Unavailable, "runner_credential_rejected",
			"the API server does not accept the runner's credential").Because(err)
	case unavailable(err):
		return fail(workload.Unavailable, "kubernetes_unavailable",
			"the API server cannot answer now").Because(err).Retry(retryUnavailable)
	}
	return fmt.Errorf("%s %s: %w", doing, name, withoutValues(err))
}

type failure func(kind workload.Kind, token, format string, args ...any) *workload.Error

// forbidden tells apart the four reasons for a 403 by the server's words:
// its status has the same code and reason for all of them.
func forbidden(err error, fail failure) error {
	message := err.Error()
	switch {
	case strings.Contains(message, "exceeded quota"):
		return fail(workload.ResourceExhausted, "quota_exceeded",
			"the namespace's resource quota is used up").Because(err).Retry(retryQuota)
	case strings.Contains(message, "violates PodSecurity"):
		return fail(workload.FailedPrecondition, "pod_security_denied",
			"the namespace's Pod Security level does not admit this Pod").Because(err)
	case strings.Contains(message, " cannot "):
		return fail(workload.PermissionDenied, "runner_not_allowed",
			"the runner's role does not allow it").Because(err)
	}
	return fail(workload.FailedPrecondition, "admission_denied", "an admission rule of the cluster refuses it").Because(withoutValues(err))
}

func unavailable(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// causes lists the fields that the server found at fault, without its words.
func causes(err error) string {
	var fields []string
	for _, c := range details(err) {
		fields = append(fields, c.Field)
	}
	if len(fields) == 0 {
		return "the object"
	}
	return strings.Join(fields, ", ")
}

// conflicts lists field and owner of each conflict, such as
// .spec.nodeName (kubectl).
func conflicts(err error) string {
	var found []string
	for _, c := range details(err) {
		_, manager, _ := strings.Cut(c.Message, `conflict with "`)
		manager, _, _ = strings.Cut(manager, `"`)
		found = append(found, fmt.Sprintf("%s (%s)", c.Field, manager))
	}
	return strings.Join(found, ", ")
}

func details(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// withoutValues keeps of an API server's answer only its code and reason.
func withoutValues(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return fmt.Errorf("the API server answered %d %s", status.Status().Code, status.Status().Reason)
}
