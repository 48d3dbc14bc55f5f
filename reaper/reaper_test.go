package reaper

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/agynio/k8s-runner/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a cluster with unfinished starts, and counts what it is told.
type fake struct {
	mu    sync.Mutex
	pods  []workload.Unfinished
	begin time.Time
	// fail is what deleting a Pod returns; kept are those that have become others.
	fail map[string]error
	kept map[string]bool

	gated, reaped int
	// gone says after which time each Pod was taken away.
	gone map[string]time.Duration
}

func (f *fake) Unfinished() []workload.Unfinished {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pods)
}

func (f *fake) Gated(pods int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gated = pods
}

func (f *fake) Reaped() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reaped++
}

func (f *fake) Reap(ctx context.Context, pod workload.Unfinished) (bool, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return false, errors.New("it would wait forever")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail[pod.Pod] != nil || f.kept[pod.Pod] {
		return false, f.fail[pod.Pod]
	}
	f.gone[pod.Pod] = time.Since(f.begin)
	f.pods = slices.DeleteFunc(f.pods, func(p workload.Unfinished) bool { return p == pod })
	return true, nil
}

// runs a reaper for a while; change is called after half of it. It returns what
// was logged.
func (f *fake) runs(t *testing.T, grace, long time.Duration, change func()) string {
	t.Helper()
	var lines bytes.Buffer
	log := logrus.New()
	log.SetOutput(&lines)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		New(Options{Starts: f, Deleter: f, Meter: f, Log: log, Grace: grace}).Run(ctx)
	}()
	time.Sleep(long / 2)
	synctest.Wait()
	f.mu.Lock()
	change()
	f.mu.Unlock()
	<-ended
	return lines.String()
}

func newFake(ages map[string]time.Duration) *fake {
	f := &fake{begin: time.Now(), gone: map[string]time.Duration{}, fail: map[string]error{}, kept: map[string]bool{}}
	for name, age := range ages {
		f.pods = append(f.pods, workload.Unfinished{Pod: name, Created: f.begin.Add(-age)})
	}
	return f
}

// TestReaper takes away each start once its grace is over and not before, and
// soon.
func TestReaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]time.Duration{"old": 21 * time.Second, "just": 20 * time.Second, "young": 0})
		f.kept["completed"] = true
		f.pods = append(f.pods, workload.Unfinished{Pod: "completed", Created: f.begin.Add(-time.Hour)})
		log := f.runs(t, 20*time.Second, time.Minute, func() {})
		want := map[string]time.Duration{"old": 0, "just": 2 * time.Second, "young": 22 * time.Second}
		if diff := cmp.Diff(want, f.gone); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if f.reaped != 3 || f.gated != 1 || strings.Count(log, "level=info") != 3 || !strings.Contains(log, "age=22s pod=young") {
			t.Errorf("%d are reaped, %d are left, and the log is\n%s", f.reaped, f.gated, log)
		}
	})
}

// TestReaperGoesOn after a fault, which it tells in one line a look.
func TestReaperGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]time.Duration{"a": time.Hour, "b": time.Hour, "c": time.Hour})
		f.fail["a"], f.fail["b"] = errors.New("no way"), errors.New("no way")
		log := f.runs(t, time.Hour-time.Second, 59*time.Second, func() {
			if f.gone["c"] != 0 || f.reaped != 1 || f.gated != 2 {
				t.Errorf("%d are reaped, %d are left", f.reaped, f.gated)
			}
			clear(f.fail)
		})
		if len(f.gone) != 3 || f.gone["a"] != 30*time.Second || strings.Count(log, "level=warning") != 3 || !strings.Contains(log, `error="no way" pods=2`) {
			t.Errorf("gone are %v, and the log is\n%s", f.gone, log)
		}
	})
}
