package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

// TestRefusesBadFiles names the setting and the file, and never shows a key.
func TestRefusesBadFiles(t *testing.T) {
	ours := certs.New(t)
	good, other := ours.Pair(t), ours.Pair(t)
	block := func(kind, text string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(text)}))
	}
	for name, test := range map[string]struct {
		pair    certs.Pair
		ca      string
		missing func(*Files) *File
		want    []string
	}{
		"no certificate file": {pair: good, missing: func(f *Files) *File { return &f.Cert }, want: []string{"tls.cert", "cert.pem", "no such file"}},
		"no key file":         {pair: good, missing: func(f *Files) *File { return &f.Key }, want: []string{"tls.key", "key.pem", "no such file"}},
		"no authorities file": {pair: good, ca: ours.PEM, missing: func(f *Files) *File { return &f.CA }, want: []string{"tls.ca", "ca.pem", "no such file"}},
		"text":                {pair: certs.Pair{Cert: "words", Key: good.Key}, want: []string{"tls.cert", "cert.pem", "no certificate in PEM form"}},
		"swapped":             {pair: certs.Pair{Cert: good.Key, Key: good.Cert}, want: []string{"tls.cert", "no certificate in PEM form"}},
		"damaged certificate": {pair: certs.Pair{Cert: good.Cert + block("CERTIFICATE", "x"), Key: good.Key}, want: []string{"tls.cert", "reading certificate 2"}},
		"half a certificate":  {pair: certs.Pair{Cert: good.Cert[:len(good.Cert)/2], Key: good.Key}, want: []string{"tls.cert", "cut short"}},
		"half a chain":        {pair: certs.Pair{Cert: good.Cert + ours.PEM[:len(ours.PEM)/2], Key: good.Key}, want: []string{"tls.cert", "cut short"}},
		"no key":              {pair: certs.Pair{Cert: good.Cert, Key: "words"}, want: []string{"tls.key", "key.pem", "no private key in PEM form"}},
		"half a key":          {pair: certs.Pair{Cert: good.Cert, Key: good.Key[:len(good.Key)/2]}, want: []string{"tls.key", "no private key in PEM form"}},
		"damaged key":         {pair: certs.Pair{Cert: good.Cert, Key: block("PRIVATE KEY", "k3y")}, want: []string{"tls.key", "cannot be read"}},
		"encrypted key":       {pair: certs.Pair{Cert: good.Cert, Key: block("ENCRYPTED PRIVATE KEY", "k3y")}, want: []string{"tls.key", "encrypted"}},
		"another key":         {pair: certs.Pair{Cert: good.Cert, Key: other.Key}, want: []string{"tls.key", "key.pem", "is not the private key", "cert.pem"}},
		"no authorities":      {pair: good, ca: "words", want: []string{"tls.ca", "ca.pem", "no certificate in PEM form"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := filesOf(t, test.pair, test.ca)
			if test.missing != nil {
				test.missing(&files).Path += ".pem"
			}
			log, lines := logtest.NewNullLogger()
			for side, err := range map[string]error{
				"server": second(Server(files, log)),
				"client": second(Client(files, "", log)),
			} {
				if err == nil {
					t.Fatalf("a %s takes it", side)
				}
				for _, want := range test.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("of a %s it does not say %q: %v", side, want, err)
					}
				}
				wantNoKey(t, err.Error(), test.pair.Key)
			}
			if len(lines.AllEntries()) > 0 {
				t.Errorf("the log is %v", lines.AllEntries())
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// wantNoKey looks for each line of a key.
func wantNoKey(t *testing.T, text, key string) {
	t.Helper()
	for line := range strings.Lines(key) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "-----") && line != "words" && strings.Contains(text, line) {
			t.Errorf("it shows the key: %s", text)
		}
	}
}

// TestFormsOfKeys has those that openssl and cert-manager write, also after other
// blocks.
func TestFormsOfKeys(t *testing.T) {
	short, long := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(rsa.GenerateKey(rand.Reader, 2048))
	for name, test := range map[string]struct {
		kind string
		der  []byte
	}{
		"PKCS 8 EC":  {"PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(short))},
		"PKCS 8 RSA": {"PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(long))},
		"PKCS 1":     {"RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(long)},
		"SEC 1":      {"EC PRIVATE KEY", must(x509.MarshalECPrivateKey(short))},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6}}))
			text += string(pem.EncodeToMemory(&pem.Block{Type: test.kind, Bytes: test.der}))
			if problem := keyProblem(text); problem != "" {
				t.Error(problem)
			}
		})
	}
}

func must[T []byte | *rsa.PrivateKey | *ecdsa.PrivateKey](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
