package events

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agynio/k8s-runner/workload"
)

func bubble(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newServer()) })
}

func of(uid types.UID) func(*corev1.Event) {
	return func(e *corev1.Event) { e.InvolvedObject.UID = uid }
}

var everything = workload.EventRequest{}

func ofPod(more ...workload.EventFilter) workload.EventRequest {
	return workload.EventRequest{Filters: append(more, workload.EventFilter{Field: byName, Values: []string{"workload-" + id}})}
}

// TestStream brings what is there in the order of time, then what comes; what
// changes comes again, what is deleted does not.
func TestStream(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for _, name := range []string{"e", "d", "c", "b", "a"} {
			s.put(name)
			time.Sleep(time.Second)
		}
		s.put("d")
		s.put("g", func(e *corev1.Event) { e.LastTimestamp = metav1.NewTime(e.LastTimestamp.Add(-time.Hour)) })
		c := s.call(t, everything)
		c.want(t, "g/1", "e/1", "c/1", "b/1", "a/1", "d/2")
		s.put("f")
		s.put("a")
		s.remove("b")
		c.want(t, "g/1", "e/1", "c/1", "b/1", "a/1", "d/2", "f/1", "a/2")
		c.end()
	})
}

// TestBetweenListAndWatch comes once.
func TestBetweenListAndWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.put("a")
		s.afterList = func() { s.put("b"); s.put("a") }
		c := s.call(t, everything)
		c.want(t, "a/1", "b/1", "a/2")
		c.end()
	})
}

// TestResume goes on without a gap and without a repetition.
func TestResume(t *testing.T) {
	fails := func(err error) func(*server) {
		return func(s *server) {
			s.set(func() { s.err = err })
			s.cut()
		}
	}
	nothing := func(*server) {}
	for name, c := range map[string]struct{ before, after func(s *server) }{
		"the watch ends":        {(*server).cut, nothing},
		"it has expired":        {func(s *server) { s.expire(true) }, nothing},
		"it expires while away": {fails(errors.New("refused")), func(s *server) { s.expire(false) }},
		"it fails": {func(s *server) {
			s.set(func() { s.tell(metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError}) })
		}, nothing},
		"the server is away":          {fails(errors.New("refused")), nothing},
		"the server has much to do":   {fails(apierrors.NewTooManyRequests("busy", 5)), nothing},
		"the watch stands still":      {func(s *server) { s.set(func() { s.frozen = true }) }, nothing},
		"it stands still and expires": {func(s *server) { s.set(func() { s.frozen = true }) }, func(s *server) { s.expire(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				for _, n := range []string{"a", "b", "c", "d"} {
					s.put(n)
				}
				call := s.call(t, everything)
				call.want(t, "a/1", "b/1", "c/1", "d/1")
				s.put("a")
				synctest.Wait()
				c.before(s)
				s.put("b")
				s.put("e")
				c.after(s)
				time.Sleep(30 * time.Second)
				s.set(func() { s.err, s.frozen = nil, false })
				time.Sleep(2*watchLimit + time.Minute)
				s.put("f")
				call.want(t, "a/1", "b/1", "c/1", "d/1", "a/2", "b/2", "e/1", "f/1")
				call.end()
			})
		})
	}
}

// TestBetweenListsAndWatches of a watch that expires, too, nothing is left out.
func TestBetweenListsAndWatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.put("a")
		c := s.call(t, everything)
		c.want(t, "a/1")
		s.set(func() { s.err = errors.New("refused") })
		s.cut()
		s.put("b")
		s.expire(false)
		s.set(func() { s.err, s.afterList = nil, func() { s.put("c") } })
		time.Sleep(time.Minute)
		c.want(t, "a/1", "b/1", "c/1")
		c.end()
	})
}

// TestAListThatExpires on its way begins anew, and brings nothing twice.
func TestAListThatExpires(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for _, n := range []string{"a", "b", "c", "d", "e"} {
			s.put(n)
		}
		s.onPage = func() error { return apierrors.NewResourceExpired("the continue token is too old") }
		c := s.call(t, everything)
		time.Sleep(time.Minute)
		c.want(t, "a/1", "b/1", "c/1", "d/1", "e/1")
		if lists := s.calls["list "]; lists != 4 {
			t.Errorf("%d pages were asked for", lists)
		}
		c.end()
	})
}

// TestAnything: whatever happens in which order, each state of an event that
// lasts for a while comes once.
func TestAnything(t *testing.T) {
	for seed := range uint64(30) {
		bubble(t, func(t *testing.T, s *server) {
			random := rand.New(rand.NewPCG(seed, 0))
			c := s.call(t, everything)
			var want []string
			counts := map[string]int{}
			for range 200 {
				switch random.IntN(8) {
				case 0:
					s.cut()
				case 1:
					s.expire(true)
				case 2:
					s.cut()
					s.expire(false)
				default:
					name := fmt.Sprint("event-", random.IntN(20))
					counts[name]++
					s.put(name)
					want = append(want, fmt.Sprintf("%s/%d", name, counts[name]))
				}
				time.Sleep(time.Duration(3+random.IntN(4)) * time.Second)
			}
			c.want(t, want...)
			c.end()
		})
	}
}

// TestSince leaves out what is older.
func TestSince(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.put("a")
		s.put("b")
		time.Sleep(10 * time.Second)
		since := time.Now()
		s.put("c")
		s.put("a")
		c := s.call(t, workload.EventRequest{Since: since})
		c.want(t, "c/1", "a/2")
		s.put("d")
		s.put("e", func(e *corev1.Event) { e.LastTimestamp = metav1.NewTime(since.Add(-time.Second)) })
		c.want(t, "c/1", "a/2", "d/1")
		c.end()
	})
}

// TestEarlierPods: events of an earlier Pod of the name are left out as long as
// there is a newer one.
func TestEarlierPods(t *testing.T) {
	for name, c := range map[string]struct {
		pod, cached string
		req         workload.EventRequest
		want        string
		gets        int
	}{
		"a newer one":              {"new", "new", ofPod(), "b/1 d/1", 1},
		"the cache is behind":      {"new", "old", ofPod(), "a/1 b/1 c/1 d/1", 2},
		"none any more":            {"", "", ofPod(), "a/1 b/1 c/1 d/1", 0},
		"just gone":                {"", "new", ofPod(), "a/1 b/1 c/1 d/1", 2},
		"the UID is asked for":     {"new", "new", ofPod(workload.EventFilter{Field: byUID, Values: []string{"old", "new"}}), "a/1 b/1 c/1 d/1", 0},
		"everything is asked for":  {"new", "new", everything, "a/1 b/1 c/1 d/1", 0},
		"by another of its fields": {"new", "new", workload.EventRequest{Filters: []workload.EventFilter{{Field: byKind, Values: []string{"Pod"}}}}, "a/1 b/1 c/1 d/1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				s.podUID, s.cachedUID = c.pod, c.cached
				s.put("a", of("old"))
				s.put("b", of("new"))
				call := s.call(t, c.req)
				synctest.Wait()
				s.put("c", of("old"))
				s.put("d", of("new"))
				synctest.Wait()
				call.want(t, strings.Fields(c.want)...)
				if s.calls["get"] != c.gets {
					t.Errorf("the Pod is read %d times", s.calls["get"])
				}
				call.end()
			})
		})
	}
}

// TestOutage of a minute ends a stream.
func TestOutage(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		token string
	}{
		"down":        {errors.New("refused"), "kubernetes_unavailable"},
		"not allowed": {apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil), "runner_not_allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				call := s.call(t, everything)
				synctest.Wait()
				s.set(func() { s.err = c.err })
				s.cut()
				call.wantEnd(t, c.token)
			})
		})
	}
}

// TestEndsWithItsCaller: with the cause of its context, or the error of send.
func TestEndsWithItsCaller(t *testing.T) {
	why := errors.New("enough")
	bubble(t, func(t *testing.T, s *server) {
		c := s.call(t, everything)
		synctest.Wait()
		c.cancel(why)
		if err := <-c.done; !errors.Is(err, why) {
			t.Errorf("it ends with %v", err)
		}
		c = s.call(t, everything)
		c.fail = why
		s.put("a")
		if err := <-c.done; !errors.Is(err, why) {
			t.Errorf("it ends with %v", err)
		}
	})
}
