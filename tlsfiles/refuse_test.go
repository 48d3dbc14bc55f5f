package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
)

// TestRefusesBadFiles names the setting and the file, and never shows a key.
func TestRefusesBadFiles(t *testing.T) {
	ours := newAuthority(t)
	good, other := ours.pair(t), ours.pair(t)
	block := func(kind, text string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(text)}))
	}
	for name, test := range map[string]struct {
		pair    pair
		ca      string
		missing func(*Files) *File
		want    []string
	}{
		"no certificate file": {pair: good, missing: func(f *Files) *File { return &f.Cert }, want: []string{"tls.cert", "cert.pem", "no such file"}},
		"no key file":         {pair: good, missing: func(f *Files) *File { return &f.Key }, want: []string{"tls.key", "key.pem", "no such file"}},
		"no authorities file": {pair: good, ca: ours.pem, missing: func(f *Files) *File { return &f.CA }, want: []string{"tls.ca", "ca.pem", "no such file"}},
		"text":                {pair: pair{cert: "words", key: good.key}, want: []string{"tls.cert", "cert.pem", "no certificate in PEM form"}},
		"swapped":             {pair: pair{cert: good.key, key: good.cert}, want: []string{"tls.cert", "no certificate in PEM form"}},
		"damaged certificate": {pair: pair{cert: good.cert + block("CERTIFICATE", "x"), key: good.key}, want: []string{"tls.cert", "reading certificate 2"}},
		"half a certificate":  {pair: pair{cert: good.cert[:len(good.cert)/2], key: good.key}, want: []string{"tls.cert", "cut short"}},
		"half a chain":        {pair: pair{cert: good.cert + ours.pem[:len(ours.pem)/2], key: good.key}, want: []string{"tls.cert", "cut short"}},
		"no key":              {pair: pair{cert: good.cert, key: "words"}, want: []string{"tls.key", "key.pem", "no private key in PEM form"}},
		"half a key":          {pair: pair{cert: good.cert, key: good.key[:len(good.key)/2]}, want: []string{"tls.key", "no private key in PEM form"}},
		"damaged key":         {pair: pair{cert: good.cert, key: block("PRIVATE KEY", "k3y")}, want: []string{"tls.key", "cannot be read"}},
		"encrypted key":       {pair: pair{cert: good.cert, key: block("ENCRYPTED PRIVATE KEY", "k3y")}, want: []string{"tls.key", "encrypted"}},
		"another key":         {pair: pair{cert: good.cert, key: other.key}, want: []string{"tls.key", "key.pem", "is not the private key", "cert.pem"}},
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
				wantNoKey(t, err.Error(), test.pair.key)
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
	elliptic, long := newKey(t), must(rsa.GenerateKey(rand.Reader, 2048))
	for name, test := range map[string]struct {
		kind string
		der  []byte
	}{
		"PKCS 8 EC":  {"PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(elliptic))},
		"PKCS 8 RSA": {"PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(long))},
		"PKCS 1":     {"RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(long)},
		"SEC 1":      {"EC PRIVATE KEY", must(x509.MarshalECPrivateKey(elliptic))},
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
