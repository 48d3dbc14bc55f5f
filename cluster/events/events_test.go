package events

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/agynio/k8s-runner/workload"
)

const id = "00000000-0000-4000-8000-00000000000a"

// pods is a cache with one Pod.
type pods struct{ state *workload.State }

func (p pods) Get(string) (*workload.State, bool) { return p.state, p.state != nil }

func seconds(n int64) metav1.Time { return metav1.Unix(n, 0) }

// TestEarlierPods: whose Events are those of an earlier Pod.
func TestEarlierPods(t *testing.T) {
	current := pods{&workload.State{ID: id, UID: "now", Created: time.Unix(100, 0)}}
	byName := workload.EventFilter{Field: "involvedObject.name", Values: []string{id}} // the id does for the name
	byUID := workload.EventFilter{Field: "involvedObject.uid", Values: []string{"before"}}
	for name, c := range map[string]struct {
		pods    Pods
		filters []workload.EventFilter
		uid     string
		at      int64
		want    bool
	}{
		"of the Pod":                    {current, []workload.EventFilter{byName}, "now", 100, true},
		"of an earlier one":             {current, []workload.EventFilter{byName}, "before", 99, false},
		"in the second of the new one":  {current, []workload.EventFilter{byName}, "before", 100, false},
		"of one not in the cache yet":   {current, []workload.EventFilter{byName}, "later", 101, true},
		"without a Pod":                 {pods{}, []workload.EventFilter{byName}, "before", 99, true},
		"asked for by its UID":          {current, []workload.EventFilter{byName, byUID}, "before", 99, true},
		"not asked for by a Pod's name": {current, nil, "before", 99, true},
	} {
		f, err := newFilter(&workload.EventRequest{Filters: c.filters}, c.pods)
		if err != nil {
			t.Fatal(err)
		}
		e := &corev1.Event{LastTimestamp: seconds(c.at)}
		e.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Name: "workload-" + id, UID: types.UID(c.uid)}
		if got := f.matches(e); got != c.want {
			t.Errorf("%s: it is wanted: %t", name, got)
		}
	}
}

// TestTimes: the latest of what reporters fill counts.
func TestTimes(t *testing.T) {
	micro := func(n int64) metav1.MicroTime { return metav1.NewMicroTime(time.Unix(n, 0)) }
	for name, c := range map[string]struct {
		event corev1.Event
		want  int64
	}{
		"old":     {corev1.Event{FirstTimestamp: seconds(1), LastTimestamp: seconds(2)}, 2},
		"new":     {corev1.Event{EventTime: micro(3)}, 3},
		"series":  {corev1.Event{EventTime: micro(3), Series: &corev1.EventSeries{LastObservedTime: micro(5)}}, 5},
		"nothing": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: seconds(7)}}, 7},
	} {
		if got := at(&c.event).Unix(); got != c.want {
			t.Errorf("%s: it is %d", name, got)
		}
	}
}

// TestEnds: a stream ends with its caller, with the runner, and when the caller
// takes no more; each with the reason, and leaves nothing behind.
func TestEnds(t *testing.T) {
	full := errors.New("the caller takes no more")
	for name, c := range map[string]struct {
		end  func(cancel func(), s *Streamer)
		send error
		want string
	}{
		"caller":  {func(cancel func(), _ *Streamer) { cancel() }, nil, "context canceled"},
		"runner":  {func(_ func(), s *Streamer) { s.Shutdown(); s.Shutdown() }, nil, "shutting_down"},
		"sending": {func(func(), *Streamer) {}, full, full.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			there := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "ns", UID: "u", ResourceVersion: "1"}}
			s := New(fake.NewClientset(there), "ns", pods{}, logrus.New())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			came, ended := make(chan struct{}), make(chan error)
			go func() {
				ended <- s.Stream(ctx, &workload.EventRequest{}, func(r workload.EventRecord) error {
					if !strings.Contains(r.JSON, `"kind":"Event","apiVersion":"v1"`) {
						t.Errorf("it is %s", r.JSON)
					}
					close(came)
					return c.send
				})
			}()
			<-came
			c.end(cancel, s)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it ends with %v", err)
			}
			if s.streams != 0 {
				t.Errorf("%d streams are counted", s.streams)
			}
		})
	}
}

// TestTooMany: the runner keeps a bound.
func TestTooMany(t *testing.T) {
	s := New(fake.NewClientset(), "ns", pods{}, logrus.New())
	s.streams = maxStreams
	var e *workload.Error
	if err := s.Stream(t.Context(), &workload.EventRequest{}, nil); !errors.As(err, &e) || e.Kind != workload.ResourceExhausted {
		t.Errorf("it ends with %v", err)
	}
}
