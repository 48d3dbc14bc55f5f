package applier

import (
	"context"
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/workload"
)

// muteWebhook is what the API server says of a webhook that knows no dry runs
// (k8s.io/apiserver, webhook errors).
var muteWebhook = regexp.MustCompile(`^admission webhook "[^"]+" does not support dry run$`)

// unknownField finds the fields that the API server says it does not know.
var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// DryRun asks the cluster whether it would take object, which stays unmade. It is
// nil where the cluster cannot say: it does not answer, a quota is used up at the
// moment, or a webhook knows no dry runs. A *workload.Error has the fields at fault
// as its violations, each with the API's word for the fault: names of object, which
// must have none of a caller's.
func (a *Applier) DryRun(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := a.kinds.resource(ctx, object.GroupVersionKind())
	if err == nil {
		options := createOptionsOf(object)
		options.DryRun = []string{metav1.DryRunAll}
		_, err = a.client.Resource(resource).Namespace(a.namespace).Create(ctx, object, options)
	}
	if err == nil || muteWebhook.MatchString(said(err)) {
		return nil
	}
	var refused *workload.Error
	if !errors.As(a.explainKind(err, "trying", object), &refused) || refused.RetryAfter > 0 {
		return nil
	}
	switch refused.Kind {
	case workload.PermissionDenied:
		refused.Message = "the Role lets the runner create no " + object.GetKind() + " of " + object.GetAPIVersion() + " in namespace " + a.namespace
		return refused
	case workload.FailedPrecondition:
		refused.Violations = faults(err)
		return refused
	}
	return nil
}

// faults are what the API server found in an object, without its values.
func faults(err error) []workload.Violation {
	var found []workload.Violation
	for _, c := range details(err).Causes {
		if c.Field != "" {
			found = append(found, workload.Violation{Field: c.Field, Message: string(c.Type)})
		}
	}
	if apierrors.IsBadRequest(err) {
		for _, m := range unknownField.FindAllStringSubmatch(said(err), -1) {
			found = append(found, workload.Violation{Field: m[1], Message: "is an unknown field"})
		}
	}
	return found
}
