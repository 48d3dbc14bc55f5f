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
// take at any moment, is not taken over.
func TestLeftovers(t *testing.T) {
	for name, c := range map[string]struct {
		there *unstructured.Unstructured
		goes  time.Duration
		took  time.Duration
		want  verdict
	}{
		"it goes soon":    {aSecret(ofAnEarlierPod), 200 * time.Millisecond, 350 * time.Millisecond, verdict{}},
		"it is going":     {aSecret(ofAnEarlierPod, terminating), 200 * time.Millisecond, 350 * time.Millisecond, verdict{}},
		"it goes at once": {aSecret(ofAnEarlierPod), time.Nanosecond, firstPause, verdict{}},
		"it stays":        {aSecret(ofAnEarlierPod), time.Hour, 9150 * time.Millisecond, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newServer(c.there)
				gone := time.AfterFunc(c.goes, func() { _ = s.Tracker().Delete(resourceNamed("secrets"), "workloads", "files") })
				defer gone.Stop()
				begin := time.Now()
				all, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil)
				if took := time.Since(begin); took != c.took {
					t.Errorf("it took %v", took)
				}
				wantVerdict(t, err, c.want)
				o := s.named(t, "secrets", "files")
				if err != nil {
					if s.named(t, "pods", podName) != nil || o.GetOwnerReferences()[0].UID != "earlier" || !strings.Contains(err.Error(), "Secret files") {
						t.Errorf("the Pod stays after %v, or the Secret becomes %v", err, o)
					}
					return
				}
				if o == nil || o.GetUID() == "leftover" || o.GetOwnerReferences()[0].UID != all[0].GetUID() {
					t.Errorf("the Secret is %v", o)
				}
			})
		})
	}
}

// TestOwnOfAGoingSecret: one of this Pod's that somebody deletes is no Secret to
// rely on.
func TestOwnOfAGoingSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pod("digest", withUID, withGates(Gate))
		a, _ := newServer(p, ownedBy(aSecret(terminating), p))
		_, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil)
		wantVerdict(t, err, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second})
	})
}

// TestOwnOfWhatGoesMeanwhile: a leftover goes between the create that it
// hinders and the look at it.
func TestOwnOfWhatGoesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newServer(aSecret(ofAnEarlierPod))
		s.before = func(write string) error {
			if write == "read secrets" {
				return s.Tracker().Delete(resourceNamed("secrets"), "workloads", "files")
			}
			return nil
		}
		if _, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestOwnTakesOverNothing that somebody else made, whatever owns it.
func TestOwnTakesOverNothing(t *testing.T) {
	owned := func(kind, name string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: name, UID: "other"}})
		}
	}
	managed := func(o *unstructured.Unstructured) {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm"}, {Manager: "kubectl"}})
	}
	for name, c := range map[string]struct {
		there *unstructured.Unstructured
		says  string
	}{
		"nobody's":      {aSecret(managed), "helm, kubectl"},
		"unknown":       {aSecret(), "somebody else"},
		"another Pod's": {aSecret(owned("Pod", "other"), managed), "helm, kubectl"},
		"a Job's":       {aSecret(owned("Job", podName), managed), "helm, kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer(c.there)
			_, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil)
			wantVerdict(t, err, verdict{workload.Aborted, "field_conflict", 0})
			if !strings.Contains(err.Error(), "the Secret files: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
			if diff := cmp.Diff(c.there, s.named(t, "secrets", "files")); diff != "" {
				t.Errorf("the Secret was changed (-was +is):\n%s", diff)
			}
		})
	}
}

func conflictWith(managers ...string) error {
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
			there := ownedBy(aSecret(), pod("", withUID))
			a, s := newServer(pod("digest", withUID, withGates(Gate)), there)
			conflicts := 1
			s.before = func(write string) error {
				if write != "patch secrets" || conflicts == 0 {
					return nil
				}
				conflicts--
				return conflictWith(c.managers...)
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
		"invalid":           {-1, invalid("too long: " + secret), 1, verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}},
		"too large":         {-1, apierrors.NewRequestEntityTooLargeError(secret), 1, verdict{workload.ResourceExhausted, "object_too_large", 0}},
		"a quota":           {-1, apierrors.NewForbidden(resource, "files", errors.New("exceeded quota: q")), 1, verdict{workload.ResourceExhausted, "quota_exceeded", 10 * time.Second}},
		"RBAC":              {-1, apierrors.NewForbidden(resource, "files", errors.New(`User "u" cannot create`)), 1, verdict{workload.PermissionDenied, "runner_not_allowed", 0}},
		"no kind":           {-1, apierrors.NewGenericServerResponse(404, "post", resource, "files", secret, 0, true), 1, verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}},
		"no namespace":      {-1, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "workloads"), 1, verdict{workload.FailedPrecondition, "namespace_missing", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newServer()
				tried := 0
				s.before = func(write string) error {
					if write != "create secrets" {
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
				if err != nil && !strings.Contains(err.Error(), "making the Secret files: ") {
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
