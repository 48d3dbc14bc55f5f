package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/google/go-cmp/cmp"
)

// observer remembers what it is told, an end after its phase.
type observer struct {
	mu    sync.Mutex
	lines []string
}

func (o *observer) Phase(ctx context.Context, name string) (context.Context, func(error)) {
	return ctx, func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.lines = append(o.lines, fmt.Sprintf("%s %v", name, err == nil))
	}
}

func (o *observer) Started(repeated bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, fmt.Sprintf("started %v, repeated %v", err == nil, repeated))
}

// TestPhases tells of each phase once, and of each start.
func TestPhases(t *testing.T) {
	quota := apierrors.NewForbidden(podsResource(), "data", errors.New("exceeded quota: q"))
	for name, c := range map[string]struct {
		there   []runtime.Object
		refused string
		want    []string
	}{
		"all":                {nil, "", []string{"create true", "dependents true", "claims true", "release true", "started true, repeated false"}},
		"the claim is there": {[]runtime.Object{aClaim()}, "", []string{"create true", "dependents true", "release true", "started true, repeated false"}},
		"again":              {[]runtime.Object{pod("digest", withUID)}, "", []string{"create true", "started true, repeated true"}},
		"completed":          {[]runtime.Object{pod("digest", withUID, withGates(Gate)), aClaim()}, "", []string{"create true", "dependents true", "release true", "started true, repeated true"}},
		"of another":         {[]runtime.Object{pod("other", withUID)}, "", []string{"create false", "started false, repeated true"}},
		"undone":             {nil, "create persistentvolumeclaims", []string{"create true", "dependents true", "claims false", "undo true", "started false, repeated false"}},
		"of a foreign claim": {[]runtime.Object{aClaim(foreign)}, "", []string{"create true", "dependents false", "undo true", "started false, repeated false"}},
		"not undone":         {nil, "create secrets delete pods", []string{"create true", "dependents false", "undo false", "started false, repeated false"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := newServer(c.there...)
			a.care.after(errReplaced) // one phase after the other
			s.before = func(write string) error {
				if c.refused == write || c.refused == "create secrets delete pods" && slices.Contains([]string{"create secrets", "delete pods"}, write) {
					return quota
				}
				return nil
			}
			o := &observer{}
			a.Observe(o)
			_, _ = start(t.Context(), a)
			if diff := cmp.Diff(c.want, o.lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPhasesSideBySide tells of both, in the order of their ends.
func TestPhasesSideBySide(t *testing.T) {
	a, _ := newServer()
	o := &observer{}
	a.Observe(o)
	if _, err := start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	slices.Sort(o.lines)
	if diff := cmp.Diff([]string{"claims true", "create true", "dependents true", "release true", "started true, repeated false"}, o.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPhasesOfAStartThatBeginsAnew: it is one start.
func TestPhasesOfAStartThatBeginsAnew(t *testing.T) {
	a, s := newServer()
	times := 1
	s.before = func(write string) error {
		s.collect(t)
		if write == "patch pods" && times > 0 {
			times--
			s.vanish(t)
		}
		return nil
	}
	o := &observer{}
	a.Observe(o)
	if _, err := a.Start(t.Context(), pod("digest"), []*unstructured.Unstructured{aSecret()}, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"create true", "dependents true", "release false", "undo true", "create true", "dependents true", "release true", "started true, repeated false"}
	if diff := cmp.Diff(want, o.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
