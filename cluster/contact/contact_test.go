package contact

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// meter remembers what it is told.
type meter struct {
	mu    sync.Mutex
	lines []string
}

func (m *meter) note(words ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, strings.Join(words, " "))
}

func (m *meter) Asked(verb, resource, code string)     { m.note("asked", verb, resource, code) }
func (m *meter) Took(verb string, after time.Duration) { m.note("took", verb, after.String()) }
func (m *meter) Heard(resource string)                 { m.note("heard", resource) }

// server answers as a test says.
type server func(*http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func answers(code int, body string) server {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func fails(err error) server {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func ask(t *testing.T, through http.RoundTripper, method, url, contentType string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://server"+url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	if answer, err := through.RoundTrip(r); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

// TestRequests: each is known by a verb and a resource, of which there are few,
// and by no name.
func TestRequests(t *testing.T) {
	const space = "/api/v1/namespaces/workloads/"
	for _, c := range []struct{ method, url, contentType, want string }{
		{"GET", space + "pods?limit=500", "", "list pods"},
		{"GET", space + "pods?watch=true", "", "watch pods"},
		{"GET", space + "pods/a", "", "get pods"},
		{"GET", space + "pods/watch?watch=1", "", "get pods"},
		{"GET", space + "pods/a/log?follow=true", "", "connect pods/log"},
		{"POST", space + "pods/a/exec?command=x", "", "connect pods/exec"},
		{"GET", space + "pods/a/exec", "", "connect pods/exec"},
		{"POST", space + "pods", "", "create pods"},
		{"DELETE", space + "pods/a", "", "delete pods"},
		{"PATCH", space + "pods/a", "application/strategic-merge-patch+json", "patch pods"},
		{"PATCH", space + "pods/a", "application/apply-patch+yaml", "apply pods"},
		{"PUT", space + "pods/a", "", "other pods"},
		{"POST", "/apis/networking.k8s.io/v1/namespaces/workloads/networkpolicies", "", "create networkpolicies"},
		{"GET", "/apis/a.example/v1", "", "get "},
		{"GET", "/api/v1/namespaces/workloads", "", "get namespaces"},
		{"GET", "/readyz", "", "get "},
		{"GET", "/", "", "get "},
	} {
		m := &meter{}
		ask(t, New(m).Wrap(answers(200, "")), c.method, c.url, c.contentType)
		verb, _, _ := strings.Cut(c.want, " ")
		want := "asked " + c.want + " 200"
		if verb != "watch" && verb != "connect" && !strings.HasPrefix(m.lines[0], "took "+verb+" ") {
			t.Errorf("of %s it times %v", c.want, m.lines)
		}
		if m.lines[len(m.lines)-1] != want || (verb == "watch" || verb == "connect") != (len(m.lines) == 1) {
			t.Errorf("%s %s is %v, not %s", c.method, c.url, m.lines, want)
		}
	}
}

// TestHeard: a cache hears each piece of a list and of a watch, and nothing else.
func TestHeard(t *testing.T) {
	for url, c := range map[string]struct {
		code int
		want []string
	}{
		"/api/v1/namespaces/a/pods?watch=true":  {200, []string{"heard pods"}},
		"/api/v1/namespaces/a/configmaps":       {200, []string{"heard configmaps"}},
		"/api/v1/namespaces/a/pods?watch=1&a=b": {410, nil},
		"/api/v1/namespaces/a/pods/b":           {200, nil},
	} {
		m := &meter{}
		ask(t, New(m).Caches(answers(c.code, "an event")), "GET", url, "")
		if diff := cmp.Diff(c.want, m.lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
}

// TestLost: what counts as an answer, and for how long there must be none.
func TestLost(t *testing.T) {
	refused := fails(errors.New("dial tcp 10.0.0.1:443:\n connection refused"))
	for name, c := range map[string]struct {
		by   server
		code string
		// reason is empty where it is an answer.
		reason string
	}{
		"well":            {answers(200, ""), "200", ""},
		"not allowed":     {answers(403, ""), "403", ""},
		"too much":        {answers(429, ""), "429", ""},
		"no connection":   {refused, "error", "no answer: dial tcp 10.0.0.1:443: connection refused"},
		"no such account": {answers(401, ""), "401", "it answers 401 Unauthorized"},
		"a gateway":       {answers(503, ""), "503", "it answers 503 Service Unavailable"},
		"a long error":    {fails(errors.New(strings.Repeat("é", 300))), "error", "no answer: " + strings.Repeat("é", 100) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &meter{}
				contact := New(m)
				begin := time.Now()
				ask(t, contact.Wrap(c.by), "GET", "/api/v1/namespaces/a/pods/b", "")
				if want := "asked get pods " + c.code; m.lines[1] != want {
					t.Errorf("it counts %v, not %s", m.lines, want)
				}
				time.Sleep(patience - time.Nanosecond)
				if reason, lost := contact.Lost(); lost {
					t.Errorf("before its time it is lost: %s", reason)
				}
				time.Sleep(time.Nanosecond)
				ask(t, contact.Wrap(c.by), "GET", "/", "") // again does not begin anew
				want := ""
				if c.reason != "" {
					want = "out of reach since " + begin.UTC().Format(time.RFC3339) + ": " + c.reason
				}
				if reason, lost := contact.Lost(); reason != want || lost != (want != "") {
					t.Errorf("it is lost: %v, %q, not %q", lost, reason, want)
				}
				ask(t, contact.Wrap(answers(404, "")), "GET", "/", "")
				if reason, lost := contact.Lost(); lost || reason != "" {
					t.Errorf("after an answer it is lost: %s", reason)
				}
			})
		})
	}
}

// TestSettling: what an API server refuses that was out of reach a moment ago is to be
// asked again, if it knows no Role; all else it means.
func TestSettling(t *testing.T) {
	const noRole = `{"kind":"Status","code":403,"message":"pods \"b\" is forbidden: User \"runner\" cannot get resource"}`
	const quota = `{"kind":"Status","code":403,"message":"pods \"b\" is forbidden: exceeded quota: User"}`
	away := fails(errors.New("connection refused"))
	for name, c := range map[string]struct {
		first server
		later time.Duration
		body  string
		want  int
	}{
		"started":      {away, 0, noRole, 503},
		"a while ago":  {away, settling, noRole, 403},
		"was there":    {answers(200, ""), 0, noRole, 403},
		"of something": {away, 0, quota, 403},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &meter{}
				contact := New(m)
				ask(t, contact.Wrap(c.first), "GET", "/", "")
				time.Sleep(time.Hour) // of the test's own time
				ask(t, contact.Wrap(answers(403, "")), "GET", "/", "")
				time.Sleep(c.later)
				r, err := http.NewRequestWithContext(t.Context(), "GET", "https://server/api/v1/namespaces/a/pods/b", nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := contact.Wrap(answers(403, c.body)).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if answer.StatusCode != c.want || strings.Contains(string(body), "is forbidden") != (c.want == 403) || err != nil {
					t.Errorf("it answers %d, %s, %v", answer.StatusCode, body, err)
				}
				if last := m.lines[len(m.lines)-1]; last != "asked get pods 403" {
					t.Errorf("it counts %s", last)
				}
			})
		})
	}
}

// TestCancelled: a caller who goes away says nothing of the server.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", "https://server/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{}
	contact := New(m)
	_, err = contact.Wrap(fails(context.Canceled)).RoundTrip(r) //nolint:bodyclose // there is none
	if err == nil || m.lines[1] != "asked get  cancelled" || contact.failing() {
		t.Errorf("it returns %v, counts %v", err, m.lines)
	}
}

// TestRefusedUpgrade: what a command's connection fails with may be an answer.
func TestRefusedUpgrade(t *testing.T) {
	contact := New(&meter{})
	through := contact.Wrap(fails(errors.New("websocket: bad handshake (403 Forbidden)")))
	ask(t, through, "GET", "/api/v1/namespaces/a/pods/b/exec?command=x", "")
	if contact.failing() {
		t.Error("the server does not answer")
	}
	ask(t, through, "GET", "/api/v1/namespaces/a/pods/b", "")
	if !contact.failing() {
		t.Error("the server answers")
	}
}

// TestRun asks as long as there is no answer, each time within a bound, and not
// at all otherwise.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contact := New(&meter{})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var asked []time.Duration
		begin, well := time.Now(), false
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			contact.Run(ctx, func(ctx context.Context) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, time.Since(begin))
				if well {
					contact.answers()
					return
				}
				<-ctx.Done()
			})
		}()
		time.Sleep(time.Hour)
		begin = time.Now()
		contact.fails("x")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if _, lost := contact.Lost(); !lost {
			t.Error("it is not lost")
		}
		mu.Lock()
		well = true
		mu.Unlock()
		time.Sleep(time.Hour)
		if reason, lost := contact.Lost(); lost {
			t.Errorf("it is lost: %s", reason)
		}
		cancel()
		<-ended
		if diff := cmp.Diff([]time.Duration{0, 7 * time.Second, 14 * time.Second, 21 * time.Second}, asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestSilence: a watch that brings nothing for too long ends; one that brings a
// little now and then does not.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		way := New(&meter{}).Caches(server(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: read}, nil
		}))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/namespaces/a/pods?watch=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := way.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		go func() {
			for range 3 {
				time.Sleep(silence - 1)
				_, _ = io.WriteString(write, "a bookmark")
			}
		}()
		begin := time.Now()
		text, err := io.ReadAll(answer.Body)
		if err == nil || string(text) != strings.Repeat("a bookmark", 3) {
			t.Errorf("it brings %q, and ends with %v", text, err)
		}
		if took := time.Since(begin); took != 3*(silence-1)+silence {
			t.Errorf("it ends after %v", took)
		}
	})
}
