package ziti

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// controller answers the SDK as one of the overlay does, so far as to log in and list
// services.
type controller struct {
	*httptest.Server
	oidc bool

	mu      sync.Mutex
	deleted bool
	silent  chan struct{} // nil, or open while nothing is answered
}

func newController(t *testing.T, oidc bool) *controller {
	t.Helper()
	c := &controller{oidc: oidc}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /edge/client/v1/version", c.version)
	mux.HandleFunc("POST /edge/client/v1/authenticate", c.authenticate)
	mux.HandleFunc("GET /edge/client/v1/current-api-session", c.known)
	mux.HandleFunc("GET /edge/client/v1/services", c.known)
	mux.HandleFunc("GET /oidc/authorize", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("auth-request-id", "1")
	})
	mux.HandleFunc("POST /oidc/login/cert", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized) // a dead identity's; others are not needed
	})
	c.Server = httptest.NewTLSServer(mux)
	t.Cleanup(c.Close)
	return c
}

// delete deletes the identity that logs in.
func (c *controller) delete() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted = true
}

func (c *controller) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deleted
}

// silence has it answer nobody until the function that it returns is called.
func (c *controller) silence() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = make(chan struct{})
	return sync.OnceFunc(func() { close(c.silent) })
}

func (c *controller) version(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	silent := c.silent
	c.mu.Unlock()
	if silent != nil {
		<-silent
	}
	capabilities := []string{}
	if c.oidc {
		capabilities = append(capabilities, "OIDC_AUTH")
	}
	say(w, http.StatusOK, map[string]any{"data": map[string]any{"version": "v1.5.0", "capabilities": capabilities}, "meta": map[string]any{}})
}

func (c *controller) authenticate(w http.ResponseWriter, _ *http.Request) {
	if c.gone() {
		refuse(w, "INVALID_AUTH", "The authentication request failed")
		return
	}
	say(w, http.StatusOK, session())
}

func (c *controller) known(w http.ResponseWriter, r *http.Request) {
	switch {
	case c.gone():
		refuse(w, "UNAUTHORIZED", "The request could not be completed. The session is not authorized or the credentials are invalid")
	case r.URL.Path == "/edge/client/v1/current-api-session":
		say(w, http.StatusOK, session())
	default:
		say(w, http.StatusOK, map[string]any{
			"data": []any{}, "meta": map[string]any{"pagination": map[string]int{"limit": 500, "offset": 0, "totalCount": 0}},
		})
	}
}

func session() map[string]any {
	return map[string]any{"meta": map[string]any{}, "data": map[string]any{
		"id": "session", "token": "session-token", "identityId": "id", "identity": map[string]any{"id": "id", "name": "runner", "entity": "identities"},
		"expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "authQueries": []any{},
	}}
}

func refuse(w http.ResponseWriter, code, message string) {
	say(w, http.StatusUnauthorized, map[string]any{
		"error": map[string]any{"code": code, "message": message, "requestId": "r1"}, "meta": map[string]any{},
	})
}

func say(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) //nolint:errchkjson // of plain values
}

// identityOf is the JSON of an identity of c.
func identityOf(t *testing.T, c *controller) []byte {
	t.Helper()
	return identityJSON(t, c.URL+"/edge/client/v1", pemOf("CERTIFICATE", c.Certificate().Raw))
}

func identityJSON(t *testing.T, api, ca string) []byte {
	t.Helper()
	cert, key := newPair(t)
	text, err := json.Marshal(map[string]any{"ztAPI": api, "id": map[string]string{
		"cert": "pem:" + cert, "key": "pem:" + key, "ca": "pem:" + ca,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newPair returns a certificate and its key.
func newPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "runner"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", signed), pemOf("EC PRIVATE KEY", text)
}

func pemOf(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

// lineLog is a log at the most talkative level, and what it has written.
func lineLog() (*logrus.Logger, fmt.Stringer) {
	log, written := logrus.New(), &written{}
	log.SetOutput(written)
	log.SetLevel(logrus.TraceLevel)
	return log, written
}

type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
