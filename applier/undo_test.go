package applier

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/agynio/k8s-runner/workload"
)

// TestStartUndoes what it created, and what an earlier start of the same request
// left, whose reply may have been lost; nothing else.
func TestStartUndoes(t *testing.T) {
	quota := apierrors.NewForbidden(podsResource(), "data", errors.New("exceeded quota: q"))
	for name, c := range map[string]struct {
		there []runtime.Object
		// meanwhile is what somebody else does before the start fails.
		meanwhile func(t *testing.T, s *server)
		stays     bool
	}{
		"what it created": {nil, nil, false},
		"a Pod that was touched meanwhile": {nil, func(t *testing.T, s *server) {
			s.change(t, "pods", podName, func(p *unstructured.Unstructured) { p.SetAnnotations(map[string]string{"touched": "now"}) })
		}, false},
		"what an earlier start left": {[]runtime.Object{pod("digest", withUID, withGates(Gate))}, nil, false},
		"not what another replica completed": {[]runtime.Object{pod("digest", withUID, withGates(Gate))}, func(t *testing.T, s *server) {
			s.change(t, "pods", podName, withGates())
		}, true},
		"not a Pod that another replica completed": {nil, func(t *testing.T, s *server) {
			s.change(t, "pods", podName, withGates())
		}, true},
		"not another Pod": {nil, func(t *testing.T, s *server) {
			s.change(t, "pods", podName, func(p *unstructured.Unstructured) { p.SetUID("another") })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer(c.there...)
			s.before = func(write string) error {
				if write != "create persistentvolumeclaims" {
					return nil
				}
				if c.meanwhile != nil {
					c.meanwhile(t, s)
				}
				return quota
			}
			_, err := start(t.Context(), a)
			wantVerdict(t, err, verdict{workload.ResourceExhausted, "quota_exceeded", 10 * time.Second})
			if !strings.Contains(err.Error(), "the claim data") {
				t.Errorf("it says %v", err)
			}
			if there := s.named(t, "pods", podName) != nil; there != c.stays {
				t.Errorf("the Pod is there: %v", there)
			}
		})
	}
}

// TestStartUndoesThroughFaults: the Pod was touched meanwhile, and the API server
// cannot tell at once what it is now.
func TestStartUndoesThroughFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newServer(aClaim(foreign))
		fails, deletes := 1, 0
		s.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if fails--; fails >= 0 {
				return true, nil, apierrors.NewServiceUnavailable("now")
			}
			return false, nil, nil
		})
		s.before = func(write string) error {
			if write != "delete pods" {
				return nil
			}
			if deletes++; deletes == 1 {
				return apierrors.NewConflict(podsResource(), podName, errors.New("precondition"))
			}
			return nil
		}
		_, err := start(t.Context(), a)
		wantVerdict(t, err, verdict{workload.FailedPrecondition, "claim_not_ours", 0})
		if s.named(t, "pods", podName) != nil || fails >= 0 {
			t.Error("the Pod stays, or nothing failed")
		}
	})
}

// TestStartUndoesForACallerWhoLeft, and never a claim.
func TestStartUndoesForACallerWhoLeft(t *testing.T) {
	a, s := newServer()
	ctx, cancel := context.WithCancel(t.Context())
	s.before = func(write string) error {
		if write == "patch pods" {
			cancel()
			return &url.Error{Op: "Patch", Err: ctx.Err()}
		}
		return nil
	}
	if _, err := start(ctx, a); !errors.Is(err, context.Canceled) {
		t.Errorf("it returns %v", err)
	}
	if s.named(t, "pods", podName) != nil || s.named(t, "persistentvolumeclaims", "data") == nil {
		t.Error("the Pod stays, or the claim is gone")
	}
}

// TestStartAfterALostReply (C33): the Pod is created, its reply is lost, and then
// the start is refused. The corrected request has the same id.
func TestStartAfterALostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newServer(aClaim(foreign))
		creates := 0
		s.before = func(write string) error {
			if creates++; write != "create pods" || creates > 1 {
				return nil
			}
			if _, _, err := s.put(resourceNamed("pods"), pod("digest", withGates(Gate))); err != nil {
				t.Error(err)
			}
			return lost
		}
		_, err := start(t.Context(), a)
		wantVerdict(t, err, verdict{workload.FailedPrecondition, "claim_not_ours", 0})
		if _, err := a.Start(t.Context(), pod("corrected"), nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestStartKeepsWhatARetryCompletes: what an earlier start left stays when the
// fault passes.
func TestStartKeepsWhatARetryCompletes(t *testing.T) {
	for name, c := range map[string]struct {
		there []runtime.Object
		stays bool
	}{
		"of an earlier start": {[]runtime.Object{pod("digest", withUID, withGates(Gate))}, true},
		"of this one":         {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newServer(c.there...)
				s.before = func(write string) error {
					if write == "create secrets" {
						return lost
					}
					return nil
				}
				_, err := start(t.Context(), a)
				wantVerdict(t, err, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second})
				if there := s.named(t, "pods", podName) != nil; there != c.stays {
					t.Errorf("the Pod is there: %v", there)
				}
			})
		})
	}
}

// TestStartOfAPodThatGoes: somebody deletes the Pod, as another call that undoes
// the same start does, or another takes its place. The start begins anew.
func TestStartOfAPodThatGoes(t *testing.T) {
	replaced := func(t *testing.T, s *server) {
		s.vanish(t)
		if _, _, err := s.put(resourceNamed("pods"), pod("digest", withGates(Gate))); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		meanwhile func(*testing.T, *server)
		// at is the write before which it happens, as often as times says.
		at    string
		times int
		want  verdict
	}{
		"deleted":                 {func(t *testing.T, s *server) { s.vanish(t) }, "patch pods", 1, verdict{}},
		"deleted twice":           {func(t *testing.T, s *server) { s.vanish(t) }, "patch pods", 2, verdict{}},
		"replaced":                {replaced, "patch pods", 1, verdict{}},
		"deleted again and again": {func(t *testing.T, s *server) { s.vanish(t) }, "patch pods", -1, verdict{workload.Unavailable, "changed_meanwhile", time.Second}},
		"of another request by now": {func(t *testing.T, s *server) {
			s.change(t, "pods", podName, func(p *unstructured.Unstructured) {
				p.SetUID("another")
				p.SetAnnotations(map[string]string{"agyn.io/request-digest": "other"})
			})
		}, "patch pods", 1, verdict{workload.AlreadyExists, "workload_exists", 0}},
		// The Secret that is there belongs to no earlier Pod, but to the next.
		"replaced before the Secret": {func(t *testing.T, s *server) {
			replaced(t, s)
			if _, _, err := s.put(resourceNamed("secrets"), ownedBy(aSecret(), s.named(t, "pods", podName))); err != nil {
				t.Error(err)
			}
		}, "create secrets", 1, verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer()
			begin, times := time.Now(), c.times
			s.before = func(write string) error {
				s.collect(t)
				if write == c.at && times != 0 {
					times--
					c.meanwhile(t, s)
				}
				return nil
			}
			_, err := start(t.Context(), a)
			wantVerdict(t, err, c.want)
			if err == nil {
				wantWhole(t, s)
			}
			if p := s.named(t, "pods", podName); err != nil && p != nil && (!gated(p) || p.GetUID() != "another") {
				t.Errorf("the Pod becomes %v", p)
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestStartOfAPodThatGoesForACallerWhoLeft does not begin anew.
func TestStartOfAPodThatGoesForACallerWhoLeft(t *testing.T) {
	a, s := newServer()
	ctx, cancel := context.WithCancel(t.Context())
	s.before = func(write string) error {
		if write == "patch pods" {
			s.vanish(t)
			cancel()
		}
		return nil
	}
	if _, err := start(ctx, a); !errors.Is(err, context.Canceled) || s.named(t, "pods", podName) != nil {
		t.Errorf("it returns %v", err)
	}
}

// TestStartAtOnce asks for no more than the API server should have of one caller
// at a time.
func TestStartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newServer()
		var mu sync.Mutex
		now, most := 0, 0
		s.asked = func() {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second) // of the test's own time
			mu.Lock()
			now--
			mu.Unlock()
		}
		var owned, claims []*unstructured.Unstructured
		for i := range 20 {
			owned, claims = append(owned, aSecret()), append(claims, aClaim())
			owned[i].SetName(fmt.Sprintf("files-%d", i))
			claims[i].SetName(fmt.Sprintf("data-%d", i))
		}
		if _, err := a.Start(t.Context(), pod("digest"), owned, claims); err != nil || most != 2*maxAtOnce {
			t.Errorf("it returns %v after %d requests at once", err, most)
		}
	})
}
