//go:build e2e

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cutter stands between a runner and the API server. It can cut what goes through,
// and know no WebSockets.
type cutter struct {
	noWebSockets atomic.Bool
	// expired is how many watches of Events are still to be refused because they begin
	// too far back.
	expired atomic.Int32
	// upgrades counts the connections that were upgraded, by protocol.
	webSockets, spdy atomic.Int32

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// newCutter puts a cutter before the API server, and changes ns so that its runner
// goes through it.
func newCutter(t testing.TB, ns *namespace) *cutter {
	t.Helper()
	transport, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: suite.config.CAData}})
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(suite.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{conns: map[net.Conn]struct{}{}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{TLSClientConfig: transport, ForceAttemptHTTP2: false, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	proxy.FlushInterval = -1
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch upgrade := strings.ToLower(r.Header.Get("Upgrade")); {
		case upgrade == "websocket" && c.noWebSockets.Load():
			http.Error(w, "no WebSockets here", http.StatusBadRequest)
			return
		case upgrade == "websocket":
			c.webSockets.Add(1)
		case strings.HasPrefix(upgrade, "spdy"):
			c.spdy.Add(1)
		}
		if strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("watch") != "" && c.expired.Add(-1) >= 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(w).Encode(apierrors.NewResourceExpired("too old resource version").Status())
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	server.Listener = &keeping{server.Listener, c}
	server.StartTLS()
	t.Cleanup(func() {
		c.cut()
		server.Close()
	})
	config, err := clientcmd.LoadFromFile(ns.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range config.Clusters {
		known.Server = server.URL
		known.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	ns.kubeconfig = filepath.Join(t.TempDir(), "through-a-proxy")
	if err := clientcmd.WriteToFile(*config, ns.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return c
}

// cut ends every connection.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close()
	}
	clear(c.conns)
}

// keeping remembers the connections.
type keeping struct {
	net.Listener
	cutter *cutter
}

func (k *keeping) Accept() (net.Conn, error) {
	conn, err := k.Listener.Accept()
	if err == nil {
		k.cutter.mu.Lock()
		k.cutter.conns[conn] = struct{}{}
		k.cutter.mu.Unlock()
	}
	return conn, err
}
