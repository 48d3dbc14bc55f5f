//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// postHolder is a proxy that holds the creation of objects of one resource until
// it lets go, as an API server does that is slow.
type postHolder struct {
	*reader
	held chan struct{}
	free chan struct{}
	once sync.Once
	// slow is how long it holds each deletion.
	slow time.Duration
}

// newPostHolder holds what is posted to paths that end with resource.
func newPostHolder(t testing.TB, resource string) *postHolder {
	t.Helper()
	h := &postHolder{held: make(chan struct{}, 100), free: make(chan struct{})}
	h.reader = newReader(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, resource) {
			h.held <- struct{}{}
			select {
			case <-h.free:
			case <-r.Context().Done():
			}
		}
		if r.Method == http.MethodDelete {
			time.Sleep(h.slow)
		}
		return false
	})
	t.Cleanup(h.letGo)
	return h
}

// await waits until a request is held.
func (h *postHolder) await(t testing.TB) {
	t.Helper()
	select {
	case <-h.held:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is asked for")
	}
}

// letGo passes all requests on, those that are held and later ones.
func (h *postHolder) letGo() { h.once.Do(func() { close(h.free) }) }
