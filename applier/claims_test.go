package applier

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/agynio/k8s-runner/workload"
)

func lostVolume(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"phase": "Lost"} }

func bound(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"phase": "Bound"} }

func foreign(o *unstructured.Unstructured) { o.SetLabels(nil) }

// TestClaims: one that is there is used as it is, or not at all (C40).
func TestClaims(t *testing.T) {
	want := labelled("volume_key", "k1")
	refused := func(token string) verdict { return verdict{workload.FailedPrecondition, token, 0} }
	for name, c := range map[string]struct {
		there *unstructured.Unstructured
		want  verdict
	}{
		"absent":             {nil, verdict{}},
		"bound":              {aClaim(want, bound), verdict{}},
		"pending":            {aClaim(want), verdict{}},
		"without a key":      {aClaim(bound), verdict{}},
		"of other labels":    {aClaim(want, labelled("team", "x")), verdict{}},
		"of another key":     {aClaim(labelled("volume_key", "k2"), bound), refused("claim_key_mismatch")},
		"of someone else":    {aClaim(want, foreign), refused("claim_not_ours")},
		"of another manager": {aClaim(want, labelled("app.kubernetes.io/managed-by", "Helm")), refused("claim_not_ours")},
		"going":              {aClaim(want, bound, terminating), verdict{workload.FailedPrecondition, "claim_terminating", 2 * time.Second}},
		"lost":               {aClaim(want, lostVolume), refused("claim_lost")},
		"foreign and going":  {aClaim(foreign, terminating), refused("claim_not_ours")},
	} {
		t.Run(name, func(t *testing.T) {
			var there []runtime.Object
			if c.there != nil {
				there = append(there, c.there)
			}
			a, s := newServer(there...)
			all, err := a.Start(t.Context(), pod("digest"), nil, []*unstructured.Unstructured{aClaim(want)})
			wantVerdict(t, err, c.want)
			if err != nil && !strings.Contains(err.Error(), "the claim data ") {
				t.Errorf("it says %v", err)
			}
			got := s.named(t, "persistentvolumeclaims", "data")
			if c.there != nil {
				if diff := cmp.Diff(c.there.Object, got.Object); diff != "" {
					t.Errorf("the claim was changed (-was +is):\n%s", diff)
				}
			}
			if p := s.named(t, "pods", podName); (p == nil) != (err != nil) {
				t.Errorf("the Pod is %v", p)
			}
			if err == nil && (len(all) != 2 || all[1].GetName() != "data" || len(got.GetOwnerReferences()) > 0) {
				t.Errorf("it returns %v of %v", all, got)
			}
		})
	}
}

// TestClaimsAreLookedAtFirst: a request that one of them refuses makes none.
func TestClaimsAreLookedAtFirst(t *testing.T) {
	fresh := aClaim()
	fresh.SetName("fresh")
	for range 20 { // the order is the scheduler's
		a, s := newServer(aClaim(foreign))
		_, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, []*unstructured.Unstructured{fresh, aClaim()})
		wantVerdict(t, err, verdict{workload.FailedPrecondition, "claim_not_ours", 0})
		if slices.Contains(s.writes, "create persistentvolumeclaims") {
			t.Fatalf("it writes %v", s.writes)
		}
	}
}

// TestClaimsThatDoNotMatter: an answer that does not depend on the claims does not
// wait for them.
func TestClaimsThatDoNotMatter(t *testing.T) {
	for name, c := range map[string]struct {
		there   []runtime.Object
		refused string
		want    verdict
	}{
		"again":           {[]runtime.Object{pod("digest", withUID)}, "", verdict{}},
		"another request": {[]runtime.Object{pod("other", withUID)}, "", verdict{workload.AlreadyExists, "workload_exists", 0}},
		"refused":         {nil, "create pods", verdict{workload.FailedPrecondition, "admission_denied", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newServer(c.there...)
				answers(s.FakeDynamicClient, "get", "persistentvolumeclaims", apierrors.NewServiceUnavailable("x"))
				s.before = func(write string) error {
					if write == c.refused {
						return forbiddenPod("no")
					}
					return nil
				}
				begin := time.Now()
				_, err := start(t.Context(), a)
				wantVerdict(t, err, c.want)
				if took := time.Since(begin); took > 0 { // of the test's own time
					t.Errorf("it takes %v", took)
				}
			})
		})
	}
}

// TestClaimsBesideTheRest: a start waits for three answers, one after the other,
// and for a fourth only after one was refused.
func TestClaimsBesideTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newServer()
		s.asked = func() { time.Sleep(time.Second) } // of the test's own time
		answers := func() int {
			for resource, name := range map[string]string{"pods": podName, "secrets": "files", "networkpolicies": "fence", "persistentvolumeclaims": "data"} {
				if s.named(t, resource, name) == nil {
					continue
				}
				if err := s.Tracker().Delete(resourceNamed(resource), "workloads", name); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			_, err := start(t.Context(), a)
			if s.before == nil && err != nil {
				t.Error(err)
			}
			return int(time.Since(begin) / time.Second)
		}
		if n := answers(); n != 3 {
			t.Errorf("it waits for %d answers", n)
		}
		s.before = func(write string) error {
			if write == "create networkpolicies" {
				return forbiddenPod("no")
			}
			return nil
		}
		answers()
		s.before = nil
		for range 2 {
			if n := answers(); n != 4 {
				t.Errorf("after a refusal it waits for %d answers", n)
			}
		}
		time.Sleep(careTime)
		if n := answers(); n != 3 {
			t.Errorf("long after it, it waits for %d answers", n)
		}
	})
}

// TestClaimsWaitAfterARefusal: a namespace that refuses start after start gets no
// claim of the second or a later one, as long as they come within careTime of each other.
func TestClaimsWaitAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newServer()
		s.asked = func() { time.Sleep(time.Second) } // of the test's own time, so that the claim could be made
		s.before = func(write string) error {
			if write == "create secrets" {
				return forbiddenPod("no")
			}
			return nil
		}
		for n := range 3 {
			s.writes = nil
			fresh := aClaim()
			fresh.SetName(fmt.Sprintf("data-%d", n))
			_, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, []*unstructured.Unstructured{fresh})
			wantVerdict(t, err, verdict{workload.FailedPrecondition, "admission_denied", 0})
			if n > 0 && slices.Contains(s.writes, "create persistentvolumeclaims") {
				t.Errorf("start %d writes %v", n, s.writes)
			}
			time.Sleep(careTime - 10*time.Second)
		}
	})
}

// TestClaimWithoutAKey may be used with one: only two keys can differ.
func TestClaimWithoutAKey(t *testing.T) {
	a, _ := newServer(aClaim(labelled("volume_key", "k2")))
	if _, err := a.Start(t.Context(), pod("digest"), nil, []*unstructured.Unstructured{aClaim()}); err != nil {
		t.Error(err)
	}
}

// TestClaimOfAnotherStart: another start creates the claim between a look and
// the create, and also takes the last of the quota for it.
func TestClaimOfAnotherStart(t *testing.T) {
	resource := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, answer := range map[string]error{
		"it is there": apierrors.NewAlreadyExists(resource, "data"),
		"the quota":   apierrors.NewForbidden(resource, "data", errors.New("exceeded quota: q")),
	} {
		t.Run(name, func(t *testing.T) {
			for key, want := range map[string]verdict{"k1": {}, "k2": {workload.FailedPrecondition, "claim_key_mismatch", 0}} {
				a, s := newServer()
				s.before = func(write string) error {
					if write != "create persistentvolumeclaims" {
						return nil
					}
					_, _, err := s.put(resourceNamed("persistentvolumeclaims"), aClaim(labelled("volume_key", key)))
					return errors.Join(answer, err)
				}
				_, err := a.Start(t.Context(), pod("digest"), nil, []*unstructured.Unstructured{aClaim(labelled("volume_key", "k1"))})
				wantVerdict(t, err, want)
			}
		})
	}
}

// mounting makes a Pod mount claims.
func mounting(names ...string) func(*unstructured.Unstructured) {
	return func(p *unstructured.Unstructured) {
		volumes := []any{map[string]any{"name": "scratch", "emptyDir": map[string]any{}}}
		for _, n := range names {
			volumes = append(volumes, map[string]any{"name": n, "persistentVolumeClaim": map[string]any{"claimName": n}})
		}
		p.Object["spec"] = map[string]any{"volumes": volumes}
	}
}

func TestMounted(t *testing.T) {
	other := aClaim(foreign)
	other.SetName("other")
	for name, c := range map[string]struct {
		there  []runtime.Object
		claims []string
		want   verdict
	}{
		"the runner's":          {[]runtime.Object{pod("digest", withUID, mounting("data", "other", "absent")), aClaim(), other}, []string{"data"}, verdict{}},
		"of a going Pod":        {[]runtime.Object{pod("digest", withUID, mounting("data"), terminating), aClaim()}, []string{"data"}, verdict{}},
		"none":                  {[]runtime.Object{pod("digest", withUID)}, nil, verdict{}},
		"no Pod":                {[]runtime.Object{aClaim()}, nil, verdict{workload.NotFound, "workload_not_found", 0}},
		"a Pod of someone else": {[]runtime.Object{pod("digest", withUID, mounting("data"), foreign), aClaim()}, nil, verdict{workload.NotFound, "workload_not_found", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := newServer(c.there...)
			uid, claims, err := a.Mounted(t.Context(), id)
			wantVerdict(t, err, c.want)
			if diff := cmp.Diff(c.claims, claims); diff != "" || (uid != "uid") != (err != nil) {
				t.Errorf("of Pod %q (-want +got):\n%s", uid, diff)
			}
		})
	}
	a, s := newServer(pod("digest", withUID, mounting("data")))
	answers(s.FakeDynamicClient, "get", "persistentvolumeclaims", apierrors.NewServiceUnavailable("x"))
	_, _, err := a.Mounted(t.Context(), id)
	wantVerdict(t, err, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second})
}

func TestDeleteClaim(t *testing.T) {
	absent := verdict{workload.NotFound, "volume_not_found", 0}
	for name, c := range map[string]struct {
		there *unstructured.Unstructured
		claim string
		want  verdict
		stays bool
	}{
		"the runner's":      {aClaim(withUID), "data", verdict{}, false},
		"one that is going": {aClaim(withUID, terminating), "data", verdict{}, false},
		"of someone else":   {aClaim(withUID, foreign), "data", verdict{workload.FailedPrecondition, "claim_not_ours", 0}, true},
		"absent":            {aClaim(withUID), "other", absent, true},
		"no name":           {aClaim(withUID), "", absent, true},
		"another no name":   {aClaim(withUID), "../pods/data", absent, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer(c.there)
			wantVerdict(t, a.DeleteClaim(t.Context(), c.claim, false), c.want)
			if asked := len(s.Actions()); c.claim != "data" && c.claim != "other" && asked > 0 {
				t.Errorf("it asks the cluster for %q", c.claim)
			}
			if there := s.named(t, "persistentvolumeclaims", "data") != nil; there != c.stays {
				t.Errorf("the claim is there: %v", there)
			}
		})
	}
}

func TestDeleteClaimGrace(t *testing.T) {
	for _, force := range []bool{false, true} {
		a, s := newServer(aClaim(withUID))
		if err := a.DeleteClaim(t.Context(), "data", force); err != nil {
			t.Fatal(err)
		}
		grace := deletions(s.FakeDynamicClient)[0].DeleteOptions.GracePeriodSeconds
		if (grace != nil) != force || force && *grace != 0 {
			t.Errorf("with force %v the grace is %v", force, grace)
		}
	}
}

// TestDeleteClaimThatIsReplaced deletes none that it has not looked at.
func TestDeleteClaimThatIsReplaced(t *testing.T) {
	a, s := newServer(aClaim(withUID))
	tries := 0
	s.before = func(string) error {
		if tries++; tries == 1 {
			s.change(t, "persistentvolumeclaims", "data", func(o *unstructured.Unstructured) { o.SetUID("another"); o.SetLabels(nil) })
		}
		return nil
	}
	wantVerdict(t, a.DeleteClaim(t.Context(), "data", false), verdict{workload.FailedPrecondition, "claim_not_ours", 0})
	if _, err := s.Resource(resourceNamed("persistentvolumeclaims")).Namespace("workloads").Get(t.Context(), "data", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
