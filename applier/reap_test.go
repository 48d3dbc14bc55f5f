package applier

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/workload"
)

// unfinished is the Pod of the test workload as a cache has it.
func unfinished(t *testing.T, s *server) workload.Unfinished {
	t.Helper()
	p := s.named(t, "pods", podName)
	return workload.Unfinished{Pod: p.GetName(), UID: string(p.GetUID()), Version: p.GetResourceVersion()}
}

// TestReap takes away a Pod that is as it was read, and no other.
func TestReap(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, s *server)
		reaped    bool
		stays     bool
	}{
		"as it was":         {func(*testing.T, *server) {}, true, false},
		"gone already":      {func(t *testing.T, s *server) { s.vanish(t) }, false, false},
		"completed":         {func(t *testing.T, s *server) { s.change(t, "pods", podName, withGates()) }, false, true},
		"changed otherwise": {func(t *testing.T, s *server) { s.change(t, "pods", podName, withGates(Gate, "another")) }, false, true},
		"another one": {func(t *testing.T, s *server) {
			s.change(t, "pods", podName, func(p *unstructured.Unstructured) { p.SetUID("another") })
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer(pod("digest", withUID, withGates(Gate)))
			read := unfinished(t, s)
			c.meanwhile(t, s)
			if reaped, err := a.Reap(t.Context(), read); err != nil || reaped != c.reaped {
				t.Errorf("it returns %v, %v", reaped, err)
			}
			if there := s.named(t, "pods", podName) != nil; there != c.stays {
				t.Errorf("the Pod is there: %v", there)
			}
		})
	}
}

// TestReapTells what keeps it from it.
func TestReapTells(t *testing.T) {
	a, s := newServer(pod("digest", withUID, withGates(Gate)))
	s.before = func(string) error { return apierrors.NewUnauthorized("no") }
	_, err := a.Reap(t.Context(), unfinished(t, s))
	wantVerdict(t, err, verdict{workload.Unavailable, "runner_credential_rejected", 0})
}

// TestReapLeavesAStartInPeace that its own process is busy with, from its first
// write to its last.
func TestReapLeavesAStartInPeace(t *testing.T) {
	a, s := newServer(pod("digest", withUID, withGates(Gate)))
	s.before = func(write string) error {
		if !a.busy.with(podName) {
			t.Errorf("at %s it counts no start", write)
		}
		return nil
	}
	if _, err := start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.before = nil
	s.change(t, "pods", podName, withGates(Gate))
	first, second := a.busy.enter(podName), a.busy.enter(podName)
	for _, leave := range []func(){first, second} {
		if reaped, err := a.Reap(t.Context(), unfinished(t, s)); err != nil || reaped {
			t.Errorf("it returns %v, %v", reaped, err)
		}
		leave()
	}
	if reaped, err := a.Reap(t.Context(), unfinished(t, s)); err != nil || !reaped {
		t.Errorf("once the starts have ended it returns %v, %v", reaped, err)
	}
}

// TestStartOfAPodThatIsGoing: a Pod that was deleted in the middle, and that a
// finalizer keeps, is no workload that has been started.
func TestStartOfAPodThatIsGoing(t *testing.T) {
	a, s := newServer()
	s.before = func(write string) error {
		if write == "patch pods" {
			s.change(t, "pods", podName, terminating)
		}
		return nil
	}
	_, err := start(t.Context(), a)
	wantVerdict(t, err, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second})
}
