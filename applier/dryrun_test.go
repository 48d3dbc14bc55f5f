package applier

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agynio/k8s-runner/workload"
)

// userCannot is how the API server says that a Role lacks a verb.
const userCannot = `User "u" cannot create resource "things"`

// TestDryRun: what the cluster says of an object is told, in its own words only
// where they are names; what it cannot say is no refusal.
func TestDryRun(t *testing.T) {
	resource := schema.GroupResource{Group: "a.example", Resource: "things"}
	forbidden := func(says string) error { return apierrors.NewForbidden(resource, "thing", errors.New(says)) }
	const no = workload.FailedPrecondition
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		answer error
		want   verdict
		says   string
		faults []workload.Violation
	}{
		"it would take it":    {object: aThing()},
		"a Pod":               {object: pod("digest")},
		"it is there already": {object: aThing(), answer: apierrors.NewAlreadyExists(resource, "thing")},
		"a webhook that knows no dry runs": {
			object: aThing(), answer: apierrors.NewBadRequest(`admission webhook "w.example" does not support dry run`),
		},
		"the words of such a webhook, by another": {
			object: aThing(), answer: apiError(400, "BadRequest", `admission webhook "w.example" denied the request: it does not support dry run`, nil),
			want: verdict{no, "admission_denied", 0}, says: "webhook w.example",
		},
		"a quota":                  {object: aThing(), answer: forbidden("exceeded quota: q")},
		"an account that comes":    {object: pod("digest"), answer: forbidden(noDefaultAccount)},
		"no answer":                {object: aThing(), answer: lost},
		"a webhook out of reach":   {object: aThing(), answer: apiError(500, "InternalError", `Internal error occurred: failed calling webhook "w.example": refused`, nil)},
		"an answer of no meaning":  {object: aThing(), answer: errors.New("odd")},
		"a Role without the verb":  {object: aThing(), answer: forbidden(userCannot), want: verdict{workload.PermissionDenied, "runner_not_allowed", 0}, says: "the Role lets the runner create no Thing of a.example/v1 in namespace workloads"},
		"a webhook's no":           {object: aThing(), answer: apiError(403, "Forbidden", `admission webhook "w.example" denied the request: `+secret, nil), want: verdict{no, "admission_denied", 0}, says: "webhook w.example"},
		"a kind that is not there": {object: object("a.example/v1", "Other", "x"), want: verdict{no, "rejected_by_kubernetes", 0}, says: "the cluster has no kind Other of a.example/v1"},
		"one of no namespace":      {object: object("a.example/v1", "Wide", "x"), want: verdict{no, "rejected_by_kubernetes", 0}, says: "in no namespace"},
		"a field of a wrong type": {
			object: aThing(), answer: apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "thing", field.ErrorList{field.TypeInvalid(field.NewPath("spec", "size"), secret, "must be of type integer")}),
			want: verdict{no, "rejected_by_kubernetes", 0}, says: "spec.size",
			faults: []workload.Violation{{Field: "spec.size", Message: "FieldValueTypeInvalid"}},
		},
		"two fields that it does not know": {
			object: aThing(), answer: apierrors.NewBadRequest(`strict decoding error: unknown field "spec.colour", unknown field "spec.parts[0].b"`),
			want: verdict{no, "rejected_by_kubernetes", 0}, says: "Thing of a.example/v1",
			faults: []workload.Violation{{Field: "spec.colour", Message: "is an unknown field"}, {Field: "spec.parts[0].b", Message: "is an unknown field"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer()
			s.before = func(write string) error {
				if strings.HasPrefix(write, "create ") {
					return c.answer
				}
				return nil
			}
			err := a.DryRun(t.Context(), c.object)
			wantVerdict(t, err, c.want)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
			wantNoSecret(t, err)
			var refused *workload.Error
			if errors.As(err, &refused) {
				if diff := cmp.Diff(c.faults, refused.Violations); diff != "" {
					t.Errorf("the faults are (-want +got):\n%s", diff)
				}
			}
			if s.named(t, "things", "thing") != nil || s.named(t, "pods", podName) != nil {
				t.Error("it makes something")
			}
		})
	}
}
