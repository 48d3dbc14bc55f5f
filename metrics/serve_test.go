package metrics

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProbes(t *testing.T) {
	type answer struct {
		Code int
		Body string
	}
	for name, c := range map[string]struct {
		method, path string
		lacks        []string
		want         answer
	}{
		"alive, though not ready": {"GET", "/livez", []string{"a: x"}, answer{200, "ok\n"}},
		"ready":                   {"GET", "/readyz", nil, answer{200, "ok\n"}},
		"not ready":               {"GET", "/readyz", []string{"a: x", "b: y"}, answer{503, "a: x\nb: y\n"}},
		"a write":                 {"POST", "/readyz", nil, answer{405, "Method Not Allowed\n"}},
		"something else":          {"GET", "/", nil, answer{404, "404 page not found\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			newMetrics(t).Handler(func() []string { return c.lacks }).ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
			if diff := cmp.Diff(c.want, answer{w.Code, w.Body.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestServe: an answer that is on its way when the service ends arrives, and
// nothing is left.
func TestServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, goOn := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-goOn
		_, _ = io.WriteString(w, "late")
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, handler) }()
	answered := make(chan string, 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		answer, err := client.Get("http://" + listener.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		answered <- string(body)
	}()
	<-asked
	cancel()
	// Once the listener is closed the end has begun.
	for {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			break
		}
		conn.Close()
	}
	close(goOn)
	if got := <-answered; got != "late" {
		t.Errorf("the answer is %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServeTells of a listener that is lost.
func TestServeTells(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := Serve(t.Context(), listener, http.NotFoundHandler()); err == nil {
		t.Error("it ended well")
	}
}
