package ziti

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

// secret stands where a key could.
const secret = "c2VjcmV0"

func newFor(t *testing.T, c *controller, log *logrus.Logger) *Network {
	t.Helper()
	n, err := New(Options{Identity: identityOf(t, c), Service: "runner-1", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestMalformed: each of these would end the process, make the SDK panic, or have it
// quote the identity or open a file of this machine.
func TestMalformed(t *testing.T) {
	cert, key := newPair(t)
	_, foreign := newPair(t)
	good := func() map[string]any {
		return map[string]any{"ztAPI": "https://ctrl.example:1280/edge/client/v1", "id": map[string]any{"cert": "pem:" + cert, "key": "pem:" + key}}
	}
	if _, err := read(encoded(t, good())); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	bare := good()
	bare["id"] = map[string]any{"cert": cert, "key": key, "ca": cert}
	if _, err := read(encoded(t, bare)); err != nil {
		t.Fatalf("one without prefixes: %v", err)
	}
	id := func(name string, value any) func(map[string]any) {
		return func(m map[string]any) { m["id"].(map[string]any)[name] = value }
	}
	top := func(name string, value any) func(map[string]any) {
		return func(m map[string]any) { m[name] = value }
	}
	broken := "pem:-----BEGIN EC PRIVATE KEY-----\n" + secret + "\n-----END EC PRIVATE KEY-----\n"
	cases := map[string]func(map[string]any){
		"no controller":                  top("ztAPI", ""),
		"plain HTTP":                     top("ztAPI", "http://ctrl.example/"+secret),
		"an address that does not parse": top("ztAPI", "https://"+secret+":%zz"),
		"an address without a host":      top("ztAPI", "https:///edge/client/v1"),
		"a password in an address":       top("ztAPI", "https://user:"+secret+"@ctrl.example"),
		"one of several is no address":   top("ztAPIs", []string{"https://ctrl.example", secret}),
		"controllers that are numbers":   top("ztAPIs", []int{4711}),
		"no id":                          top("id", map[string]any{}),
		"an id that is text":             top("id", secret),
		"a key in a file":                id("key", "file:///etc/"+secret),
		"a path":                         id("key", "/etc/"+secret),
		"a key in a module":              id("key", "pkcs11://"+secret),
		"a key that is no PEM":           id("key", "pem:"+secret),
		"a key that is malformed":        id("key", broken),
		"a key cut off":                  id("key", "pem:"+key[:len(key)/2]),
		"the key of another":             id("key", "pem:"+foreign),
		"a number for a key":             id("key", 4711),
		"a certificate in a file":        id("cert", "file:///etc/"+secret),
		"a certificate that is a key":    id("cert", "pem:"+key),
		"a malformed certificate":        id("cert", "pem:-----BEGIN CERTIFICATE-----\n"+secret+"\n-----END CERTIFICATE-----\n"),
		"an authority in a file":         id("ca", "file:///etc/"+secret),
		"an authority of another type":   id("ca", strings.ReplaceAll(cert, "CERTIFICATE", "X509 CRL")),
		"an authority that is no PEM":    id("ca", "pem:"+secret),
		"an authority that is a key":     id("ca", "pem:"+key),
		"a malformed authority":          id("ca", "pem:"+cert+"-----BEGIN CERTIFICATE-----\n"+secret+"\n-----END CERTIFICATE-----\n"),
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			whole := good()
			spoil(whole)
			wantRefused(t, encoded(t, whole), key)
		})
	}
	for name, text := range map[string]string{
		"empty": "", "no JSON": secret, "cut off": `{"id":{"key":"` + secret, "a list": `["` + secret + `"]`, "null": "null",
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, []byte(text), key) })
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func wantRefused(t *testing.T, text []byte, key string) {
	t.Helper()
	log, written := lineLog()
	_, err := New(Options{Identity: text, Service: "runner-1", Log: log})
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v", err, err, err), written.String()} {
		for _, hidden := range append(strings.Fields(key), secret, "4711") {
			if len(hidden) > 3 && !strings.HasPrefix(hidden, "-----") && hidden != "PRIVATE" && strings.Contains(shown, hidden) {
				t.Errorf("%q is shown: %s", hidden, shown)
			}
		}
	}
}

// TestReadKeepsOnlyWhatItKnows: files that an identity names beside its key are not
// looked at.
func TestReadKeepsOnlyWhatItKnows(t *testing.T) {
	text := identityJSON(t, "https://ctrl.example", pemOf("CERTIFICATE", mustCertificate(t)))
	text = bytes.Replace(text, []byte(`"id":{`), []byte(`"id":{"server_cert":"file:///etc/absent","server_key":"file:///etc/absent",`), 1)
	config, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	if config.ID.Key != "" || config.ID.ServerCert != "" {
		t.Error("the SDK is given the identity's own words")
	}
	if len(config.Credentials.TlsCerts()) != 1 || config.Credentials.GetCaPool() == nil {
		t.Error("the certificate or the authority got lost")
	}
}

func mustCertificate(t *testing.T) []byte {
	t.Helper()
	c := newController(t, false)
	return c.Certificate().Raw
}

// wantClean finds what was not to be logged.
func wantClean(t *testing.T, log string) {
	t.Helper()
	for _, hidden := range []string{"session-token", "BEGIN", "code_challenge=", "state="} {
		if strings.Contains(log, hidden) {
			t.Errorf("the log shows %q:\n%s", hidden, log)
		}
	}
}
