//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// eventStream is what comes of StreamEvents.
type eventStream struct {
	mu    sync.Mutex
	all   []corev1.Event
	times []time.Time
	err   error
	ended chan struct{}
}

func (r *runner) streamEvents(t testing.TB, since int64, filters ...*runnerv1.EventFilter) *eventStream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := r.StreamEvents(ctx, &runnerv1.StreamEventsRequest{Since: since, Filters: filters})
	if err != nil {
		t.Fatal(err)
	}
	s := &eventStream{ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for {
			m, err := stream.Recv()
			var e corev1.Event
			if err == nil {
				err = json.Unmarshal([]byte(m.GetData().GetJson()), &e)
			}
			s.mu.Lock()
			if err != nil {
				s.err = err
				s.mu.Unlock()
				return
			}
			s.all, s.times = append(s.all, e), append(s.times, m.GetData().GetTs().AsTime())
			s.mu.Unlock()
		}
	}()
	return s
}

// names are those of the Events that came.
func (s *eventStream) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, len(s.all))
	for i, e := range s.all {
		names[i] = e.Name
	}
	return names
}

func filter(key string, values ...string) *runnerv1.EventFilter {
	return &runnerv1.EventFilter{Key: key, Values: values}
}

// event makes an Event about a Pod.
func (ns *namespace) event(t testing.TB, name, reason, pod, uid string, at time.Time) {
	t.Helper()
	_, err := suite.admin.CoreV1().Events(ns.name).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns.name, Name: pod, UID: types.UID(uid)},
		Reason:         reason, Type: "Normal", FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
}

// TestEvents: a stream has what a workload is waiting for, what was there and what
// comes.
func TestEvents(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	id := r.sleeping(t)
	r.run(t, script(id, "true"))
	s := r.streamEvents(t, 0, filter("involvedObject.name", "workload-"+id), filter("involvedObject.kind", "Pod"))
	eventually(t, 10*time.Second, "the Pod's events are there", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen := map[string]bool{}
		for i, e := range s.all {
			seen[e.Reason] = true
			if e.Kind != "Event" || e.APIVersion != "v1" || e.ManagedFields != nil || time.Since(s.times[i]) > 5*time.Minute {
				return fmt.Errorf("one is %v, of %s", e, s.times[i])
			}
		}
		if !seen["Scheduled"] || !seen["Started"] {
			return fmt.Errorf("there are %v", seen)
		}
		return nil
	})
	if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the kill is there", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.all {
			if e.Reason == "Killing" {
				return nil
			}
		}
		return fmt.Errorf("there are %d", len(s.all))
	})
}

// TestEventFilters: each filter takes what it says, and no other.
func TestEventFilters(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	now := time.Now()
	ns.event(t, "a", "Made", "x", "u1", now.Add(-time.Hour))
	ns.event(t, "b", "Made", "y", "u2", now)
	ns.event(t, "c", "Lost", "x", "u3", now)
	for name, c := range map[string]struct {
		since   int64
		filters []*runnerv1.EventFilter
		want    string
	}{
		"all, oldest first":   {0, nil, "[a b c]"},
		"since":               {now.Add(-time.Minute).Unix(), nil, "[b c]"},
		"name":                {0, []*runnerv1.EventFilter{filter("involvedObject.name", "x")}, "[a c]"},
		"one of two values":   {0, []*runnerv1.EventFilter{filter("involvedObject.uid", "u1", "u2")}, "[a b]"},
		"both of two filters": {0, []*runnerv1.EventFilter{filter("involvedObject.name", "x"), filter("reason", "Lost")}, "[c]"},
		"type and kind":       {0, []*runnerv1.EventFilter{filter("type", "Normal"), filter("involvedObject.kind", "Pod")}, "[a b c]"},
		"namespace":           {0, []*runnerv1.EventFilter{filter("namespace", ns.name), filter("involvedObject.namespace", ns.name)}, "[a b c]"},
		"metadata.name":       {0, []*runnerv1.EventFilter{filter("metadata.name", "b")}, "[b]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := r.streamEvents(t, c.since, c.filters...)
			eventually(t, 5*time.Second, "they are there", func() error {
				if got := fmt.Sprint(s.names()); got != c.want {
					return fmt.Errorf("they are %s, not %s", got, c.want)
				}
				return nil
			})
		})
	}
	for name, f := range map[string]*runnerv1.EventFilter{"key": filter("colour", "red"), "values": filter("reason")} {
		s := r.streamEvents(t, 0, f)
		if <-s.ended; status.Code(s.err) != codes.InvalidArgument {
			t.Errorf("a filter with a wrong %s ends with %v", name, s.err)
		}
	}
}

// TestEventsHaveNoGap: while Events are made without a pause, streams that begin at
// any time have each once, also through connections that break and watches that expire.
func TestEventsHaveNoGap(t *testing.T) {
	const count = 300
	ns := newNamespace(t)
	proxy := newCutter(t, ns)
	r := startRunner(t, ns)
	var streams []*eventStream
	for i := range count {
		if i%50 == 10 {
			streams = append(streams, r.streamEvents(t, 0, filter("reason", "Counted")))
		}
		if i%100 == 60 {
			proxy.expired.Store(int32(i / 50)) // what begins then lists again
			proxy.cut()
		}
		ns.event(t, fmt.Sprintf("e%03d", i), "Counted", "x", "u", time.Now())
	}
	for i, s := range streams {
		eventually(t, 20*time.Second, "all are there", func() error {
			if n := len(s.names()); n < count {
				return fmt.Errorf("stream %d has %d", i, n)
			}
			return nil
		})
		seen := map[string]int{}
		for _, name := range s.names() {
			seen[name]++
		}
		if len(seen) != count || len(s.names()) != count {
			t.Errorf("stream %d has %d Events of %d names", i, len(s.names()), len(seen))
		}
	}
	if proxy.expired.Load() > 0 {
		t.Error("no watch expired")
	}
	r.stop(t)
	for _, s := range streams {
		if <-s.ended; status.Code(s.err) != codes.Unavailable || errors.Is(s.err, io.EOF) {
			t.Errorf("with the runner a stream ends with %v", s.err)
		}
	}
}

// TestEventsOfEarlierPod: who asks for a Pod by its name has nothing of the one that
// had it before.
func TestEventsOfEarlierPod(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	id := r.sleeping(t)
	pod := r.pod(t, id)
	ns.event(t, "earlier", "Counted", pod.Name, "another-uid", pod.CreationTimestamp.Add(-time.Second))
	ns.event(t, "now", "Counted", pod.Name, string(pod.UID), time.Now())
	s := r.streamEvents(t, 0, filter("involvedObject.name", pod.Name), filter("reason", "Counted"))
	ns.event(t, "late", "Counted", pod.Name, "another-uid", pod.CreationTimestamp.Add(-time.Second))
	ns.event(t, "last", "Counted", pod.Name, string(pod.UID), time.Now())
	eventually(t, 10*time.Second, "the last one is there", func() error {
		if got := fmt.Sprint(s.names()); got != "[now last]" {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
}
