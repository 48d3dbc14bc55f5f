package applier

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

// refusal is an answer with the words that Kubernetes 1.37 was seen to say.
type refusal struct {
	code    int32
	reason  metav1.StatusReason
	message string
}

const pods403 = `pods "workload-x" is forbidden: `

// TestRefusals: each refusal of admission has a token of its own, names what an
// operator looks for, to the caller and in the log, and passes on no value.
func TestRefusals(t *testing.T) {
	no := func(token string) verdict { return verdict{workload.FailedPrecondition, token, 0} }
	const forbidden, invalid = metav1.StatusReasonForbidden, metav1.StatusReasonInvalid
	for name, c := range map[string]struct {
		answer refusal
		want   verdict
		// told is what the caller is told, logged what the log has beside it.
		told, logged string
	}{
		"RuntimeClass":  {refusal{403, forbidden, pods403 + `pod rejected: RuntimeClass "kata" not found`}, no("runtime_class_missing"), "RuntimeClass kata", `"kata" not found`},
		"PriorityClass": {refusal{403, forbidden, pods403 + `no PriorityClass with name high was found`}, no("priority_class_missing"), "PriorityClass high", "name high was found"},
		"the default service account": {
			refusal{403, forbidden, pods403 + noDefaultAccount},
			verdict{workload.FailedPrecondition, "service_account_missing", time.Second}, "service account workloads/default", "not found",
		},
		"another service account": {
			refusal{403, forbidden, pods403 + `error looking up service account workloads/x: serviceaccount "x" not found`},
			no("service_account_missing"), "service account workloads/x", "not found",
		},
		"a limit":         {refusal{403, forbidden, pods403 + `maximum memory usage per Pod is 1Gi, but limit is 2Gi`}, no("limit_range_violated"), "maximum memory usage per Pod is 1Gi, but limit is 2Gi", "but limit is 2Gi"},
		"no limit":        {refusal{403, forbidden, pods403 + `maximum memory usage per Pod is 1Gi.  No limit is specified`}, no("limit_range_violated"), "No limit is specified", "No limit is specified"},
		"limits":          {refusal{403, forbidden, pods403 + `[minimum cpu usage per Container is 10m, but request is 1m, cpu max limit to request ratio per Container is 4, but provided ratio is 1000.000000]`}, no("limit_range_violated"), "ratio is 1000.000000", "minimum cpu usage"},
		"a ratio":         {refusal{403, forbidden, pods403 + `nvidia.com/gpu max limit to request ratio per Container is 4, but provided ratio is 1000.000000`}, no("limit_range_violated"), "nvidia.com/gpu max limit", "ratio"},
		"a claim's limit": {refusal{403, forbidden, `persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi`}, no("limit_range_violated"), "request is 2Gi", "request is 2Gi"},
		"a namespace that goes": {
			refusal{403, forbidden, pods403 + `unable to create new content in namespace workloads because it is being terminated`},
			no("namespace_terminating"), "namespace workloads", "being terminated",
		},
		"a quota of resources": {
			refusal{403, forbidden, pods403 + `failed quota: q: must specify limits.cpu for: main; requests.memory for: main`},
			no("quota_needs_resources"), "q: must specify limits.cpu for: main; requests.memory for: main", "must specify limits.cpu",
		},
		"a server that has just started": {
			refusal{403, forbidden, pods403 + `not yet ready to handle request`},
			verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, "", "not yet ready",
		},
		"something else": {refusal{403, forbidden, pods403 + secret}, no("admission_denied"), "an admission rule", "403 Forbidden"},

		"a policy":                   {refusal{422, invalid, pods403 + `ValidatingAdmissionPolicy 'no-tokens' with binding 'b' denied request: ` + secret}, no("admission_denied"), "policy no-tokens", "policy no-tokens"},
		"a policy without a binding": {refusal{422, invalid, pods403 + `ValidatingAdmissionPolicy 'no-tokens' denied request: ` + secret}, no("admission_denied"), "policy no-tokens", "422"},
		"a policy for claims":        {refusal{422, invalid, `persistentvolumeclaims "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ` + secret}, no("admission_denied"), "policy p ", "policy p"},
		"a policy that forbids":      {refusal{403, forbidden, pods403 + `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: pods cannot be forbidden: exceeded quota: ` + secret}, no("admission_denied"), "policy p ", "policy p"},
		"a policy of sizes":          {refusal{413, metav1.StatusReasonRequestEntityTooLarge, pods403 + `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: m`}, no("admission_denied"), "policy p ", "policy p"},
		"a policy of users":          {refusal{401, metav1.StatusReasonUnauthorized, pods403 + `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: m`}, no("admission_denied"), "policy p ", "policy p"},
		"a mutating policy":          {refusal{403, invalid, `policy 'mut' with binding 'mutb' denied request: expression resulted in error: ` + secret}, no("admission_denied"), "policy mut", "policy mut"},
		"a webhook":                  {refusal{422, invalid, `admission webhook "w.example" denied the request: ` + secret}, no("admission_denied"), "webhook w.example", "webhook w.example"},
		"a webhook without a word":   {refusal{500, "", `admission webhook "w.example" denied the request without explanation`}, no("admission_denied"), "webhook w.example", "webhook w.example"},

		// Values that are quoted say what they like.
		"the words of a webhook in a value":  {refusal{422, invalid, `Pod "workload-x" is invalid: spec.x: Not found: "` + secret + `admission webhook "evil" denied the request"`}, no("rejected_by_kubernetes"), "", "422 Invalid"},
		"its bare words":                     {refusal{422, invalid, `Pod "workload-x" is invalid: spec.x: Not found: "` + secret + `" denied the request"`}, no("rejected_by_kubernetes"), "", "422 Invalid"},
		"the words of a policy in a value":   {refusal{422, invalid, `Pod "workload-x" is invalid: spec.x: "pods is forbidden: ValidatingAdmissionPolicy 'evil' denied request: "`}, no("rejected_by_kubernetes"), "", "422 Invalid"},
		"the words of a quota in a value":    {refusal{403, forbidden, pods403 + secret + ` is forbidden: exceeded quota: q`}, no("admission_denied"), "", "403 Forbidden"},
		"the words of etcd in a value":       {refusal{422, invalid, `Pod "workload-x" is invalid: spec.x: "etcdserver: request is too large"`}, no("rejected_by_kubernetes"), "", "422 Invalid"},
		"the words of etcd in a duplicate":   {refusal{500, "", `failed to create typed patch object: duplicate entries for key "etcdserver: request is too large"`}, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}, "", "500"},
		"the words of client-go in a value":  {refusal{422, invalid, `Pod "workload-x" is invalid: spec.x: "error when reading response body"`}, no("rejected_by_kubernetes"), "", "422 Invalid"},
		"the words of an account in a value": {refusal{403, forbidden, pods403 + secret + `: ` + noDefaultAccount}, no("admission_denied"), "", "403 Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := apiError(c.answer.code, c.answer.reason, c.answer.message, nil)
			err := (&Applier{namespace: "workloads"}).explain(answer, "starting workload", "workload-x")
			var e *workload.Error
			if !errors.As(err, &e) {
				t.Fatalf("it is %v", err)
			}
			if diff := cmp.Diff(c.want, verdict{e.Kind, e.Token, e.RetryAfter}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(e.Message, c.told) || !strings.Contains(e.Err.Error(), c.logged) {
				t.Errorf("the caller is told %q, and the log %q", e.Message, e.Err)
			}
			if passing := passing(answer); passing != (c.want.Retry > 0) {
				t.Errorf("it passes: %v", passing)
			}
			wantNoSecret(t, err)
		})
	}
}
