package applier

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/agynio/k8s-runner/workload"
)

func startWith(t *testing.T, a *Applier, owned ...*unstructured.Unstructured) error {
	t.Helper()
	_, err := a.Start(t.Context(), pod("digest"), owned, nil)
	return err
}

// TestKindsAreAskedForOnce, and those of the runner never.
func TestKindsAreAskedForOnce(t *testing.T) {
	a, s := newServer()
	for range 2 {
		if err := startWith(t, a, aThing(), aSecret(), aPolicy()); err != nil {
			t.Fatal(err)
		}
		o := s.named(t, "things", "thing")
		if o == nil || len(o.GetOwnerReferences()) != 1 || o.GetOwnerReferences()[0].Name != podName {
			t.Fatalf("the thing is %v", o)
		}
		if err := s.Tracker().Delete(resourceNamed("pods"), "workloads", podName); err != nil {
			t.Fatal(err)
		}
		for resource, name := range map[string]string{"things": "thing", "secrets": "files", "networkpolicies": "fence"} {
			if err := s.Tracker().Delete(resourceNamed(resource), "workloads", name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"a.example/v1"}, s.discovered); diff != "" {
		t.Errorf("it asked for (-want +got):\n%s", diff)
	}
	want := map[string]string{"pods": "Ignore", "secrets": "Ignore", "networkpolicies": "Ignore", "things": "Strict"}
	if diff := cmp.Diff(want, s.strict); diff != "" {
		t.Errorf("the fields are checked (-want +got):\n%s", diff)
	}
}

// TestKindsThatCannotBe are refused in words, and the Pod goes.
func TestKindsThatCannotBe(t *testing.T) {
	no := verdict{workload.FailedPrecondition, "rejected_by_kubernetes", 0}
	resource := schema.GroupResource{Group: "a.example", Resource: "things"}
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		create error
		want   verdict
		says   string
	}{
		"no group":            {object("b.example/v1", "Thing", "x"), nil, no, "the cluster has no kind Thing of b.example/v1"},
		"no kind":             {object("a.example/v1", "Other", "x"), nil, no, "the cluster has no kind Other of a.example/v1"},
		"another case":        {object("a.example/v1", "thing", "x"), nil, no, "the cluster has no kind thing of a.example/v1"},
		"no namespace":        {object("a.example/v1", "Wide", "x"), nil, no, "the kind Wide of a.example/v1 is in no namespace"},
		"gone":                {aThing(), apierrors.NewGenericServerResponse(404, "post", resource, "thing", secret, 0, true), no, "the cluster has no kind Thing of a.example/v1"},
		"going":               {aThing(), apierrors.NewMethodNotSupported(resource, "create"), no, "the cluster takes no new Thing of a.example/v1"},
		"of an unknown field": {aThing(), apierrors.NewBadRequest(`strict decoding error: unknown field "` + secret + `"`), no, "to the cluster it is no Thing of a.example/v1"},
		"RBAC":                {aThing(), apierrors.NewForbidden(resource, "thing", errors.New(userCannot)), verdict{workload.PermissionDenied, "runner_not_allowed", 0}, "the runner's role does not allow it"},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer()
			s.before = func(write string) error {
				if write == "create things" {
					return c.create
				}
				return nil
			}
			err := startWith(t, a, c.object)
			wantVerdict(t, err, c.want)
			if !strings.Contains(err.Error(), "making the "+c.object.GetKind()) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
			wantNoSecret(t, err)
			if s.named(t, "pods", podName) != nil {
				t.Error("the Pod stays")
			}
		})
	}
}

// TestKindThatComesBack under the name of another resource is found by the second
// start, and one that is new by the next.
func TestKindThatComesBack(t *testing.T) {
	a, s := newServer()
	s.things = ""
	if err := startWith(t, a, aThing()); err == nil {
		t.Fatal("a kind that is not there is made")
	}
	s.things = "things"
	if err := startWith(t, a, aThing()); err != nil {
		t.Fatal(err)
	}
	if err := s.Tracker().Delete(resourceNamed("pods"), "workloads", podName); err != nil {
		t.Fatal(err)
	}
	s.things = "thingies"
	s.before = func(write string) error {
		if strings.HasSuffix(write, " things") {
			return apierrors.NewGenericServerResponse(404, "post", schema.GroupResource{Resource: "things"}, "thing", "", 0, true)
		}
		return nil
	}
	if err := startWith(t, a, aThing()); err == nil {
		t.Fatal("a kind that is gone is made")
	}
	if err := startWith(t, a, aThing()); err != nil || s.named(t, "thingies", "thing") == nil {
		t.Errorf("the kind is not found again: %v", err)
	}
}

// TestKindsAreAskedForAgain while the cluster cannot answer.
func TestKindsAreAskedForAgain(t *testing.T) {
	for times, want := range map[int]verdict{2: {}, maxTries: {workload.Unavailable, "kubernetes_unavailable", time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			a, s := newServer()
			left := times
			s.before = func(write string) error {
				if !strings.HasPrefix(write, "discover ") || left == 0 {
					return nil
				}
				left--
				return apierrors.NewServiceUnavailable("busy")
			}
			wantVerdict(t, startWith(t, a, aThing()), want)
		})
	}
}
