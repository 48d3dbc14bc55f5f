package applier

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agynio/k8s-runner/workload"
)

// ofAnEarlierPod makes an object a leftover.
func ofAnEarlierPod(o *unstructured.Unstructured) {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: podName, UID: "earlier"}})
	o.SetUID("leftover")
	o.Object["data"] = map[string]any{"b": "old"}
}

// TestLeftovers: a Secret of an earlier Pod, which the garbage collector may
// take at any moment, becomes the new Pod's before the gate is lifted.
func TestLeftovers(t *testing.T) {
	for name, c := range map[string]struct {
		collect func(applies int, o *unstructured.Unstructured) *unstructured.Unstructured
		uid     string
		took    time.Duration
		want    verdict
	}{
		"the collector lets go of it": {func(_ int, o *unstructured.Unstructured) *unstructured.Unstructured {
			o.SetOwnerReferences(o.GetOwnerReferences()[len(o.GetOwnerReferences())-1:])
			return o
		}, "leftover", firstPause, verdict{}},
		"the collector takes it all the same": {func(applies int, o *unstructured.Unstructured) *unstructured.Unstructured {
			if applies == 2 {
				return nil
			}
			return o
		}, "", 3 * firstPause, verdict{}},
		"the collector does not work": {func(_ int, o *unstructured.Unstructured) *unstructured.Unstructured { return o },
			"leftover", 0, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second}},
		"it is going, and something holds it": {func(_ int, o *unstructured.Unstructured) *unstructured.Unstructured {
			o.SetOwnerReferences(o.GetOwnerReferences()[len(o.GetOwnerReferences())-1:])
			terminating(o)
			return o
		}, "leftover", 0, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newServer(aSecret(ofAnEarlierPod))
				applies := 0
				s.collect = func(o *unstructured.Unstructured) *unstructured.Unstructured {
					applies++
					return c.collect(applies, o)
				}
				begin := time.Now()
				all, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil)
				wantVerdict(t, err, c.want)
				if err != nil {
					if s.named(t, "pods", podName) != nil || !strings.Contains(err.Error(), "Secret files") {
						t.Errorf("the Pod stays after %v", err)
					}
					return
				}
				o := s.named(t, "secrets", "files")
				if o == nil || !ownedAlone(o, all[0].GetUID()) || (string(o.GetUID()) == "leftover") != (c.uid == "leftover") {
					t.Errorf("the Secret is %v", o)
				}
				if took := time.Since(begin); took != c.took {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func fieldConflict(managers ...string) error {
	var causes []metav1.StatusCause
	for _, m := range managers {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "` + m + `" using v1`, Field: ".data." + secret})
	}
	return apierrors.NewApplyConflict(causes, "Apply failed: "+secret)
}

// TestFieldConflicts: what others wrote stays, what the runner itself once
// wrote in another way does not (C35).
func TestFieldConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		managers []string
		want     verdict
		force    []bool
	}{
		"another manager":   {[]string{"kubectl-edit", "kubectl-edit"}, verdict{workload.Aborted, "field_conflict", 0}, nil},
		"the runner":        {[]string{"k8s-runner", "k8s-runner"}, verdict{}, []bool{true}},
		"both":              {[]string{"k8s-runner", "kubectl-edit"}, verdict{workload.Aborted, "field_conflict", 0}, nil},
		"a similar manager": {[]string{"k8s-runner-2"}, verdict{workload.Aborted, "field_conflict", 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer()
			conflicts := 1
			s.before = func(write string) error {
				if conflicts--; write == "patch secrets" && conflicts >= -1 {
					return fieldConflict(c.managers...)
				}
				return nil
			}
			_, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil)
			wantVerdict(t, err, c.want)
			if err != nil && !strings.Contains(err.Error(), "the Secret files: fields of it belong to "+strings.Join(compact(c.managers), ", ")) {
				t.Errorf("it says %v", err)
			}
			wantNoSecret(t, err)
			if diff := cmp.Diff(c.force, s.force); diff != "" {
				t.Errorf("forced (-want +got):\n%s", diff)
			}
		})
	}
}

func compact(managers []string) []string {
	if len(managers) == 2 && managers[0] == managers[1] {
		return managers[:1]
	}
	return managers
}

// TestOwnTriesAgain what passes, and tells what does not.
func TestOwnTriesAgain(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	invalid := func(text string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "files", field.ErrorList{field.Invalid(field.NewPath("data"), secret, text)})
	}
	for name, c := range map[string]struct {
		times int
		err   error
		tried int
		want  verdict
	}{
		"too many requests": {2, apierrors.NewTooManyRequests(secret, 0), 3, verdict{}},
		"unavailable":       {-1, apierrors.NewServiceUnavailable(secret), maxTries, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}},
		"a leftover that is immutable, until it is gone": {3, invalid("field is immutable when `immutable` is set"), 4, verdict{}},
		"immutable":    {-1, invalid("field is immutable"), maxTries, verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}},
		"invalid":      {-1, invalid("too long: " + secret), 1, verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}},
		"too large":    {-1, apierrors.NewRequestEntityTooLargeError(secret), 1, verdict{workload.ResourceExhausted, "object_too_large", 0}},
		"a quota":      {-1, apierrors.NewForbidden(resource, "files", errors.New("exceeded quota: q")), 1, verdict{workload.ResourceExhausted, "quota_exceeded", 10 * time.Second}},
		"RBAC":         {-1, apierrors.NewForbidden(resource, "files", errors.New(`User "u" cannot patch`)), 1, verdict{workload.PermissionDenied, "runner_not_allowed", 0}},
		"no kind":      {-1, apierrors.NewGenericServerResponse(404, "patch", resource, "files", secret, 0, true), 1, verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}},
		"no namespace": {-1, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "workloads"), 1, verdict{workload.FailedPrecondition, "namespace_missing", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newServer()
				tried := 0
				s.before = func(write string) error {
					if write != "patch secrets" {
						return nil
					}
					if tried++; c.times >= 0 && tried > c.times {
						return nil
					}
					return c.err
				}
				_, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil)
				wantVerdict(t, err, c.want)
				if tried != c.tried {
					t.Errorf("it tried %d times, not %d", tried, c.tried)
				}
				if err != nil && !strings.Contains(err.Error(), "applying the Secret files: ") {
					t.Errorf("it says %v", err)
				}
				wantNoSecret(t, err)
				if p := s.named(t, "pods", podName); (p == nil) != (err != nil) {
					t.Errorf("the Pod is %v", p)
				}
			})
		})
	}
}
