//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a runner and the API server, and breaks what a test says.
// It knows nothing of what it passes on.
type proxy struct {
	address string
	target  string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{}
	running  sync.WaitGroup
}

// newProxy returns a proxy that ends with the test.
func newProxy(t testing.TB) *proxy {
	t.Helper()
	return newProxyOf(t, suite.config.Host)
}

// newProxyOf stands before server, a URL.
func newProxyOf(t testing.TB, server string) *proxy {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: "127.0.0.1:0", target: at.Host, conns: map[net.Conn]struct{}{}}
	p.open(t)
	t.Cleanup(func() {
		p.close()
		p.running.Wait()
	})
	return p
}

// server is where the API server is, through the proxy.
func (p *proxy) server() string { return "https://" + p.address }

// open begins to take connections, at the same address as before.
func (p *proxy) open(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	p.mu.Lock()
	p.listener, p.address = listener, listener.Addr().String()
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(conn) })
		}
	})
}

// close refuses connections, and cuts those that are there.
func (p *proxy) close() {
	p.mu.Lock()
	_ = p.listener.Close()
	p.mu.Unlock()
	p.cut()
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.conns)
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	_ = server.Close()
	<-back
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

// reader is a proxy that reads the requests, and answers itself those that it wants.
type reader struct{ *httptest.Server }

// newReader returns a reader that ends with the test. answer reports whether it has
// answered.
func newReader(t testing.TB, answer func(w http.ResponseWriter, r *http.Request) bool) *reader {
	t.Helper()
	reverse := newReverse(t)
	r := &reader{httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			reverse.ServeHTTP(w, r)
		}
	}))}
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// newReverse passes requests on to the API server.
func newReverse(t testing.TB) *httputil.ReverseProxy {
	t.Helper()
	target, err := url.Parse(suite.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(suite.config.CAData)
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 64},
		FlushInterval: -1,
	}
}

// ca is whose certificate it has.
func (r *reader) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
}

// expirer is a proxy that answers the next watches of a resource with what the API
// server says when it has forgotten a version.
type expirer struct {
	*reader
	watches atomic.Int32
	// inStream has it said in the watch, not instead of it.
	inStream atomic.Bool
}

func newExpirer(t testing.TB, resource string) *expirer {
	t.Helper()
	e := &expirer{}
	e.reader = newReader(t, func(w http.ResponseWriter, r *http.Request) bool {
		watch := strings.HasSuffix(r.URL.Path, "/"+resource) && r.URL.Query().Get("watch") != ""
		if !watch || e.watches.Load() <= 0 {
			return false
		}
		e.watches.Add(-1)
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
		w.Header().Set("Content-Type", "application/json")
		if e.inStream.Load() {
			_, _ = io.WriteString(w, `{"type":"ERROR","object":`+status+"}\n")
			return true
		}
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, status)
		return true
	})
	return e
}

// expire has the next n watches answered so, and ends those that are there.
func (e *expirer) expire(n int32, inStream bool) {
	e.inStream.Store(inStream)
	e.watches.Store(n)
	e.CloseClientConnections()
}

// upgrades is a proxy that counts the connections which are upgraded, by protocol,
// can know the one or the other not, and can be cut.
type upgrades struct {
	*proxy
	*reader
	noWebSockets, noSPDY atomic.Bool
	webSockets, spdy     atomic.Int32
}

func newUpgrades(t testing.TB) *upgrades {
	t.Helper()
	u := &upgrades{}
	u.reader = newReader(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch upgrade := strings.ToLower(r.Header.Get("Upgrade")); {
		case upgrade == "websocket" && u.noWebSockets.Load():
			http.Error(w, "no WebSockets here", http.StatusBadRequest)
			return true
		case strings.HasPrefix(upgrade, "spdy") && u.noSPDY.Load():
			r.Header.Del("Upgrade") // as proxies do that know WebSockets only
			return false
		case upgrade == "websocket":
			u.webSockets.Add(1)
		case strings.HasPrefix(upgrade, "spdy"):
			u.spdy.Add(1)
		}
		return false
	})
	u.proxy = newProxyOf(t, u.URL)
	return u
}
