package applier

import (
	"errors"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/agynio/k8s-runner/workload"
)

const podName = "workload-" + id

var lost = &url.Error{Op: "Post", Err: errors.New("connection reset")}

// wantWhole fails unless the test workload is there with all that goes with it.
func wantWhole(t *testing.T, s *server) {
	t.Helper()
	p := s.named(t, "pods", podName)
	if p == nil || gated(p) {
		t.Fatalf("the Pod is %v", p)
	}
	for resource, name := range map[string]string{"secrets": "files", "networkpolicies": "fence"} {
		o := s.named(t, resource, name)
		if o == nil {
			t.Fatalf("there is no %s", name)
		}
		no := false
		want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: podName, UID: p.GetUID(), Controller: &no}}
		if diff := cmp.Diff(want, o.GetOwnerReferences()); diff != "" {
			t.Errorf("owners of %s (-want +got):\n%s", name, diff)
		}
	}
	if c := s.named(t, "persistentvolumeclaims", "data"); c == nil || len(c.GetOwnerReferences()) > 0 {
		t.Errorf("the claim is %v", c)
	}
}

// TestStartOwnerFirst: the Pod comes first and gated, then what goes with it,
// then the gate goes.
func TestStartOwnerFirst(t *testing.T) {
	a, s := newServer()
	s.before = func(write string) error {
		p := s.named(t, "pods", podName)
		if write != "create pods" && (p == nil || !gated(p)) {
			t.Errorf("at %s the Pod is %v", write, p)
		}
		return nil
	}
	all, err := start(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.writes); n != 5 || s.writes[0] != "create pods" || s.writes[n-1] != "patch pods" {
		t.Errorf("it writes %v", s.writes)
	}
	if len(all) != 2 || all[0].GetName() != podName || gated(all[0]) || all[1].GetName() != "data" || all[1].GetUID() == "" {
		t.Errorf("it returns %v", all)
	}
	wantWhole(t, s)
}

func TestStartAloneIsOneWrite(t *testing.T) {
	a, s := newServer()
	all, err := a.Start(t.Context(), pod("digest"), nil, nil)
	if err != nil || len(all) != 1 || gated(all[0]) {
		t.Errorf("it returns %v, %v", all, err)
	}
	if diff := cmp.Diff([]string{"create pods"}, s.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestStartKeepsItsInput(t *testing.T) {
	a, s := newServer()
	input := func() []*unstructured.Unstructured {
		return []*unstructured.Unstructured{pod("digest", withGates("a/b")), aSecret(), aClaim()}
	}
	in := input()
	if _, err := a.Start(t.Context(), in[0], in[1:2], in[2:]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(input(), in); diff != "" {
		t.Errorf("it changes its input (-was +is):\n%s", diff)
	}
	if left := gates(s.named(t, "pods", podName)); len(left) != 1 || left[0].(map[string]any)["name"] != "a/b" {
		t.Errorf("the template's gates become %v", left)
	}
}

// TestStartAgain: what an earlier start left unfinished is completed, and only
// that.
func TestStartAgain(t *testing.T) {
	whole := func() []runtime.Object {
		owned := func(o *unstructured.Unstructured) *unstructured.Unstructured {
			o = ownedBy(o, pod("", withUID))
			o.SetUID("uid-of-it")
			return o
		}
		return []runtime.Object{owned(aSecret()), owned(aPolicy()), aClaim()}
	}
	for name, c := range map[string]struct {
		there  []runtime.Object
		writes []string
		want   verdict
	}{
		"gated": {[]runtime.Object{pod("digest", withUID, withGates(Gate))}, []string{"create networkpolicies", "create persistentvolumeclaims", "create pods", "create secrets", "patch pods"}, verdict{}},
		"gated, the rest there": {append(whole(), pod("digest", withUID, withGates(Gate))), []string{
			"create networkpolicies", "create pods", "create secrets", "patch networkpolicies", "patch pods", "patch secrets", "read networkpolicies", "read secrets",
		}, verdict{}},
		"complete":        {append(whole(), pod("digest", withUID)), []string{"create pods"}, verdict{}},
		"another gate":    {append(whole(), pod("digest", withUID, withGates("a/b"))), []string{"create pods"}, verdict{}},
		"another request": {[]runtime.Object{pod("other", withUID, withGates(Gate))}, []string{"create pods"}, verdict{workload.AlreadyExists, "workload_exists", 0}},
		"going":           {[]runtime.Object{pod("digest", withUID, withGates(Gate), terminating)}, []string{"create pods"}, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer(c.there...)
			_, err := start(t.Context(), a)
			wantVerdict(t, err, c.want)
			slices.Sort(s.writes)
			if diff := cmp.Diff(c.writes, s.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if err == nil {
				wantWhole(t, s)
			}
		})
	}
}

// TestStartOfAGatedPodAlone: the gate is of an earlier rendering of the same
// request, when something went with the Pod.
func TestStartOfAGatedPodAlone(t *testing.T) {
	a, s := newServer(pod("digest", withUID, withGates(Gate)))
	if _, err := a.Start(t.Context(), pod("digest"), nil, nil); err != nil {
		t.Fatal(err)
	}
	if gated(s.named(t, "pods", podName)) {
		t.Error("the Pod stays gated")
	}
}

// TestStartAfterACrash at any point is completed by the same request.
func TestStartAfterACrash(t *testing.T) {
	const writes = 5
	for n := 1; n <= writes+1; n++ {
		synctest.Test(t, func(t *testing.T) {
			a, s := newServer()
			s.before = nth(n, lost)
			_, err := start(t.Context(), a)
			if (err == nil) != (n > writes) {
				t.Errorf("without write %d it returns %v", n, err)
			}
			s.before = nil
			if _, err := start(t.Context(), a); err != nil {
				t.Errorf("after a crash at write %d: %v", n, err)
			}
			wantWhole(t, s)
		})
	}
}
