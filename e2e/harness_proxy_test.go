//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// faulty is a proxy between a runner and the API server that has the faults of a
// plan, and kills the runner when the plan says so.
type faulty struct {
	*reader
	reverse *httputil.ReverseProxy

	mu      sync.Mutex
	plan    plan
	kill    func()
	killed  bool
	deaths  int
	seen    map[apiCall]int
	calls   int
	writes  int
	busy    int
	expired int
	watches map[*http.Request]context.CancelFunc
	// trace tells what was done, for who looks for the cause of a failure.
	trace []string
}

// newFaulty returns a proxy that ends with the test, and passes everything on
// until it has a plan.
func newFaulty(t testing.TB) *faulty {
	t.Helper()
	f := &faulty{reverse: newReverse(t), watches: map[*http.Request]context.CancelFunc{}}
	f.reverse.ErrorLog = log.New(io.Discard, "", 0) // connections break here all the time
	f.follow(plan{})
	f.reader = newReader(t, f.answer)
	f.Config.ErrorLog = f.reverse.ErrorLog
	return f
}

// follow begins a plan.
func (f *faulty) follow(p plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.seen, f.trace = p, map[apiCall]int{}, nil
	f.calls, f.writes, f.deaths = 0, 0, 0
}

// watchOver has the plan's kills call kill.
func (f *faulty) watchOver(kill func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kill, f.killed = kill, false
}

// hasKilled reports whether the runner has been killed.
func (f *faulty) hasKilled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.killed
}

// idle waits until no request is on its way.
func (f *faulty) idle(t testing.TB) {
	t.Helper()
	eventually(t, 30*time.Second, "no request is on its way", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.busy > 0 {
			return fmt.Errorf("%d are", f.busy)
		}
		return nil
	})
}

// note adds a line to the trace.
func (f *faulty) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = append(f.trace, fmt.Sprintf(format, args...))
}

// told returns the trace.
func (f *faulty) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.trace...)
}

// counted returns how many writes the server has answered under this plan, and how
// often it killed the runner.
func (f *faulty) counted() (writes, deaths int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes, f.deaths
}

func (f *faulty) answer(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Query().Get("watch") != "" {
		f.watch(w, r)
		return true
	}
	call, ok := apiCallOf(r, func() string { return nameIn(r) })
	if ok {
		f.pass(w, r, call)
	}
	return ok
}

// nameIn reads the name of the object that r creates.
func nameIn(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var object metav1.PartialObjectMetadata
	_ = json.Unmarshal(body, &object)
	return object.Name
}

// pass does what the plan says to one request.
func (f *faulty) pass(w http.ResponseWriter, r *http.Request, c apiCall) {
	does, pause := f.next(c)
	defer f.done()
	switch does {
	case unsent:
		panic(http.ErrAbortHandler)
	case conflicts:
		refuse(w, c, http.StatusConflict, metav1.StatusReasonConflict, 0)
		return
	case throttled:
		refuse(w, c, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, int(pause/(100*time.Millisecond)))
		return
	case fails:
		refuse(w, c, http.StatusInternalServerError, metav1.StatusReasonInternalError, 0)
		return
	case overloaded:
		refuse(w, c, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 0)
		return
	}
	time.Sleep(pause / 2)
	// Who asked may be gone; what is on its way arrives all the same.
	heard := httptest.NewRecorder()
	f.reverse.ServeHTTP(heard, r.WithContext(context.WithoutCancel(r.Context())))
	time.Sleep(pause / 2)
	kills, tells := f.answered(c, heard.Code)
	if kills && !tells {
		f.end()
	}
	if kills && !tells || does == lost {
		panic(http.ErrAbortHandler)
	}
	for key, values := range heard.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(heard.Code)
	_, _ = w.Write(heard.Body.Bytes())
	if kills {
		_ = http.NewResponseController(w).Flush()
		f.end()
	}
}

// next draws the fault of c, and breaks the watches when it is their time.
func (f *faulty) next(c apiCall) (fault, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy++
	f.calls++
	f.seen[c]++
	if expired, cuts := f.plan.cuts[f.calls]; cuts {
		if expired {
			f.expired = len(f.watches)
		}
		for _, cut := range f.watches {
			cut()
		}
		f.trace = append(f.trace, fmt.Sprintf("  watches are cut, expired: %v", expired))
	}
	does, pause := f.plan.of(c, f.seen[c])
	if does != passed {
		f.trace = append(f.trace, fmt.Sprintf("  %s (%d): %s, %s", c, f.seen[c], does, pause))
	}
	return does, pause
}

// answered counts a write, and tells whether the runner is killed now and whether
// it hears of the answer before.
func (f *faulty) answered(c apiCall, code int) (kills, tells bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.writes() {
		f.writes++
		tells, kills = f.plan.kills[f.writes]
		kills = kills && !f.killed
	}
	f.trace = append(f.trace, fmt.Sprintf("  %s: %d", c, code))
	if kills {
		f.trace = append(f.trace, fmt.Sprintf("  the runner is killed after write %d, which it hears of: %v", f.writes, tells))
	}
	return kills, tells
}

// end kills the runner.
func (f *faulty) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.killed && f.kill != nil {
		f.kill()
		f.killed = true
		f.deaths++
	}
}

func (f *faulty) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
}

// watch passes a watch on until it is cut.
func (f *faulty) watch(w http.ResponseWriter, r *http.Request) {
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	f.mu.Lock()
	expired := f.expired > 0
	if expired {
		f.expired--
	} else {
		f.watches[r] = cut
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, r)
	}()
	if expired {
		refuse(w, apiCall{}, http.StatusGone, metav1.StatusReasonExpired, 0)
		return
	}
	f.reverse.ServeHTTP(w, r.WithContext(ctx))
}

// refuse answers as the API server does. Asked to wait, a caller is told so twice.
func refuse(w http.ResponseWriter, c apiCall, code int, reason metav1.StatusReason, seconds int) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "a fault of the plan",
		Details: &metav1.StatusDetails{Name: c.name, Kind: c.resource, RetryAfterSeconds: int32(seconds)},
	}
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status)
}
