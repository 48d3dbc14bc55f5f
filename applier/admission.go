package applier

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/agynio/k8s-runner/workload"
)

// What the API server says of a refusal begins with words of its own; what
// follows are those of a webhook or a policy, or values of the object. So only
// the beginning decides, which nobody else can write, and mostly only names are
// passed on. The words are Kubernetes' 1.37; those of others end as any refusal.
var (
	forbiddenPrefix = regexp.MustCompile(`^\S+(?: "\S*")? is forbidden: `)
	webhookDenial   = regexp.MustCompile(`^admission webhook "([^"]+)" denied the request`)
	policyDenial    = regexp.MustCompile(`^(?:\S+(?: "\S*")? is forbidden: ValidatingAdmissionPolicy|policy) ['"]([^'"]+)['"](?: with binding '[^']+')? denied request: `)
	limitRange      = regexp.MustCompile(`^\[?(?:(?:maximum|minimum) \S+ usage|\S+ max limit to request ratio) per \S+ is `)
)

// refuser names the webhook or the policy that said no, with whatever code it
// chose.
func refuser(err error) string {
	message := said(err)
	if m := webhookDenial.FindStringSubmatch(message); m != nil {
		return "the admission webhook " + m[1]
	}
	if m := policyDenial.FindStringSubmatch(message); m != nil {
		return "the admission policy " + m[1]
	}
	return ""
}

// rule is what one of the server's own admission checks says.
func rule(err error) string {
	message := said(err)
	return message[len(forbiddenPrefix.FindString(message)):]
}

// forbidden tells apart the reasons for a 403: its status has the same code and
// reason for all of them. What the checks that are known here say holds limits
// and names, but no values, and is for the log.
func forbidden(err error, fail failure) *workload.Error {
	says := rule(err)
	begins := func(start string) bool { return strings.HasPrefix(says, start) }
	known := func(kind workload.Kind, token, format string, args ...any) *workload.Error {
		e := fail(kind, token, format, args...)
		return e.Because(fmt.Errorf("%w: %s", e.Err, says))
	}
	const no = workload.FailedPrecondition
	switch {
	case begins("exceeded quota: "):
		return known(workload.ResourceExhausted, "quota_exceeded", "the namespace's resource quota is used up").Retry(retryQuota)
	case begins("failed quota: "):
		return known(no, "quota_needs_resources", "the namespace's resource quota wants more said: %s", strings.TrimPrefix(says, "failed quota: "))
	case begins("violates PodSecurity"):
		return known(no, "pod_security_denied", "the namespace's Pod Security level does not admit this Pod")
	case begins(`User "`):
		return known(workload.PermissionDenied, "runner_not_allowed", "the runner's role does not allow it")
	case begins(`pod rejected: RuntimeClass "`):
		return known(no, "runtime_class_missing", "the cluster has no RuntimeClass %s", between(says, `"`, `"`))
	case begins("no PriorityClass with name "):
		return known(no, "priority_class_missing", "the cluster has no PriorityClass %s", between(says, "with name ", " "))
	case begins(noAccount):
		e := known(no, "service_account_missing", "there is no service account %s", between(says, noAccount, ":"))
		if settling(err) {
			return e.Retry(retryUnavailable)
		}
		return e
	case begins("unable to create new content in namespace "):
		return known(no, "namespace_terminating", "the namespace %s is being deleted", between(says, "in namespace ", " "))
	case limitRange.MatchString(says):
		return known(no, "limit_range_violated", "a LimitRange of the namespace does not allow it: %s", strings.Trim(says, "[]"))
	case settling(err):
		return known(workload.Unavailable, "kubernetes_unavailable", "the API server cannot answer now").Retry(retryUnavailable)
	}
	return fail(no, "admission_denied", "an admission rule of the cluster refuses it")
}

// noAccount begins what is said of a Pod whose service account is missing.
const noAccount = "error looking up service account "

// settling reports whether the server refuses what it will allow: a namespace
// gets its default account a moment after it was made, and admission of a server
// that has just started refuses everything.
func settling(err error) bool {
	says := rule(err)
	return strings.HasPrefix(says, noAccount) && strings.HasSuffix(says, `/default: serviceaccount "default" not found`) ||
		says == "not yet ready to handle request"
}

// said is the message of the API server's answer, or nothing if err is none.
func said(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Message
}
