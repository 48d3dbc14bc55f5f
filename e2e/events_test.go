//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// kubeEvent is an Event that StreamEvents has brought, and its ts.
type kubeEvent struct {
	corev1.Event
	at   time.Time
	json string
}

// eventCall is a StreamEvents and what it has brought.
type eventCall struct {
	mu  sync.Mutex
	got []kubeEvent
	// err is that of the end, once done is closed.
	err  error
	done chan struct{}
}

// events calls StreamEvents, and reads until its end in the background.
func (r *runner) events(t testing.TB, req *runnerv1.StreamEventsRequest) *eventCall {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &eventCall{done: make(chan struct{})}
	stream, err := r.StreamEvents(ctx, req)
	if err != nil {
		t.Fatalf("StreamEvents: %v", err)
	}
	go func() {
		defer close(c.done)
		defer cancel()
		for {
			answer, err := stream.Recv()
			if err != nil {
				c.err = err
				return
			}
			event := kubeEvent{at: answer.GetData().GetTs().AsTime(), json: answer.GetData().GetJson()}
			if err := json.Unmarshal([]byte(event.json), &event.Event); err != nil {
				c.err = err
				return
			}
			c.mu.Lock()
			c.got = append(c.got, event)
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-c.done
	})
	return c
}

func (c *eventCall) all() []kubeEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[:len(c.got):len(c.got)]
}

// awaits waits for an event.
func (c *eventCall) awaits(t testing.TB, what string, is func(kubeEvent) bool) kubeEvent {
	t.Helper()
	var found kubeEvent
	eventually(t, 60*time.Second, what, func() error {
		for _, e := range c.all() {
			if is(e) {
				found = e
				return nil
			}
		}
		var reasons []string
		for _, e := range c.all() {
			reasons = append(reasons, e.InvolvedObject.Name+" "+e.Reason)
		}
		return fmt.Errorf("there are %s; the stream has %w", strings.Join(reasons, ", "), c.err)
	})
	return found
}

func eventFilter(key string, values ...string) *runnerv1.EventFilter {
	return &runnerv1.EventFilter{Key: key, Values: values}
}

// TestEvents: what keeps a workload from starting is told (C28), in Kubernetes'
// own form.
func TestEvents(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req, other := sleeper(), sleeper()
	req.Main.Image = "127.0.0.1:1/none"
	pod := "workload-" + req.GetWorkloadId()
	c := r.events(t, &runnerv1.StreamEventsRequest{Filters: []*runnerv1.EventFilter{eventFilter("involvedObject.name", pod, "x")}})
	r.start(t, other)
	r.start(t, req)
	scheduled := c.awaits(t, "the Pod is scheduled", func(e kubeEvent) bool { return e.Reason == "Scheduled" })
	failed := c.awaits(t, "the image is missing", func(e kubeEvent) bool { return e.Reason == "Failed" && strings.Contains(e.Message, "127.0.0.1:1/none") })
	for _, e := range []kubeEvent{scheduled, failed} {
		if e.Kind != "Event" || e.APIVersion != "v1" || len(e.ManagedFields) > 0 || string(e.InvolvedObject.UID) != string(r.pod(t, req.GetWorkloadId()).UID) {
			t.Errorf("there is %s", e.json)
		}
		if time.Since(e.at) > 5*time.Minute || e.at.IsZero() {
			t.Errorf("at %v there was %s", e.at, e.json)
		}
	}
	c.awaits(t, "it is tried again", func(e kubeEvent) bool { return e.Reason == "Pulling" && e.Count > 1 })
	for _, e := range c.all() {
		if e.InvolvedObject.Name != pod {
			t.Errorf("there is %s", e.json)
		}
	}
	again := r.events(t, &runnerv1.StreamEventsRequest{Filters: []*runnerv1.EventFilter{
		eventFilter("involvedObject.name", pod), eventFilter("type", "Warning"), eventFilter("namespace", r.namespace), eventFilter("reason", "Failed", "BackOff"),
	}})
	again.awaits(t, "the failure is still there", func(e kubeEvent) bool { return e.Name == failed.Name })
	for _, e := range again.all() {
		if e.Type != "Warning" || e.InvolvedObject.Name != pod {
			t.Errorf("there is %s", e.json)
		}
	}
	wrong := r.events(t, &runnerv1.StreamEventsRequest{Filters: []*runnerv1.EventFilter{eventFilter("type", "Warning"), eventFilter("spec.x", "y")}})
	<-wrong.done
	wantError(t, wrong.err, codes.InvalidArgument, "UNKNOWN_FILTER_KEY")
	if !strings.Contains(status.Convert(wrong.err).Message(), "filters[1].key") {
		t.Errorf("it says %v", wrong.err)
	}
}

// record makes an event that says number.
func (r *runner) record(t testing.TB, number int) {
	t.Helper()
	now := metav1.Now()
	_, err := suite.admin.CoreV1().Events(r.namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprint("e-", number)},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "x", Namespace: r.namespace},
		Reason:         "Test", Message: fmt.Sprint(number), FirstTimestamp: now, LastTimestamp: now, Count: 1, Type: "Normal",
	}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("making an event: %v", err)
	}
}

// wantEach wants each of the recorded events 1..n once.
func (c *eventCall) wantEach(t testing.TB, n int) {
	t.Helper()
	c.awaits(t, "the last event is there", func(e kubeEvent) bool { return e.Message == fmt.Sprint(n) })
	times := map[string]int{}
	for _, e := range c.all() {
		times[e.Message]++
	}
	for i := 1; i <= n; i++ {
		if times[fmt.Sprint(i)] != 1 {
			t.Errorf("event %d comes %d times", i, times[fmt.Sprint(i)])
		}
	}
}

// TestEventsHaveNoGap: between those that are there and the new ones, wherever a
// stream begins.
func TestEventsHaveNoGap(t *testing.T) {
	const n = 300
	r := startRunner(t, newNamespace(t))
	req := &runnerv1.StreamEventsRequest{Filters: []*runnerv1.EventFilter{eventFilter("reason", "Test")}}
	var calls []*eventCall
	for i := range n {
		r.record(t, i+1)
		if i%10 == 0 {
			calls = append(calls, r.events(t, req))
		}
	}
	for _, c := range calls {
		c.wantEach(t, n)
	}
}

// TestEventsGoOn after a watch that has expired, in both ways in which the API
// server says so, and after broken connections, with no gap and no repetition (C43).
func TestEventsGoOn(t *testing.T) {
	ns := newNamespace(t)
	e := newExpirer(t, "events")
	r := startRunner(t, ns.through(t, e.URL, e.ca()))
	c := r.events(t, &runnerv1.StreamEventsRequest{Filters: []*runnerv1.EventFilter{eventFilter("reason", "Test")}})
	number := 0
	for _, breaks := range []func(){
		func() {},
		func() { e.expire(1, true) },
		func() { e.expire(1, false) },
		func() { e.expire(3, true) },
		func() { e.expire(0, false) },
	} {
		breaks()
		for range 20 {
			number++
			r.record(t, number)
		}
		c.wantEach(t, number)
	}
	if left := e.watches.Load(); left > 0 {
		t.Errorf("%d watches were not asked for", left)
	}
}

// TestEventsOfAnEarlierPod do not come, if the name of the Pod is asked for.
func TestEventsOfAnEarlierPod(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the first one runs", running)
	first := string(r.pod(t, req.GetWorkloadId()).UID)
	if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: req.GetWorkloadId(), Force: true}); err != nil {
		t.Fatal(err)
	}
	filter := &runnerv1.StreamEventsRequest{Filters: []*runnerv1.EventFilter{eventFilter("involvedObject.name", "workload-"+req.GetWorkloadId())}}
	r.events(t, filter).awaits(t, "the first one's are there as long as it is the last one", func(e kubeEvent) bool { return string(e.InvolvedObject.UID) == first && e.Reason == "Started" })
	r.start(t, req)
	c := r.events(t, filter)
	c.awaits(t, "the second one starts", func(e kubeEvent) bool { return e.Reason == "Started" })
	for _, e := range c.all() {
		if string(e.InvolvedObject.UID) == first {
			t.Errorf("of the first one there is %s", e.json)
		}
	}
}

// TestEventsSince leaves out what is older.
func TestEventsSince(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	r.record(t, 1)
	old := r.events(t, &runnerv1.StreamEventsRequest{})
	since := old.awaits(t, "the first one is there", func(e kubeEvent) bool { return e.Message == "1" }).at.Unix() + 1
	eventually(t, 5*time.Second, "the second has passed", func() error {
		if time.Now().Unix() < since {
			return fmt.Errorf("it is %v", time.Now())
		}
		return nil
	})
	r.record(t, 2)
	c := r.events(t, &runnerv1.StreamEventsRequest{Since: since})
	r.record(t, 3)
	c.awaits(t, "the third is there", func(e kubeEvent) bool { return e.Message == "3" })
	if got := c.all(); len(got) != 2 || got[0].Message != "2" {
		t.Errorf("there are %v", got)
	}
}
