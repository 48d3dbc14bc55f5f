// Package certs makes authorities and certificates, for tests.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// life is how long before and after now a certificate counts.
const life = time.Hour

// Authority signs certificates.
type Authority struct {
	// PEM is its own certificate.
	PEM         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Pair is a certificate and its private key, in PEM form.
type Pair struct {
	Cert, Key string
	// Serial is the certificate's number.
	Serial string
}

// New returns an authority of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	template := template(t, "authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a := &Authority{certificate: template, key: key(t)}
	a.certificate, a.PEM = a.sign(t, template, &a.key.PublicKey)
	return a
}

// Pair makes a pair for servers on 127.0.0.1, 127.0.0.2 and runner.example, and for
// clients. Each change is made to the certificate before it is signed.
func (a *Authority) Pair(t testing.TB, changes ...func(*x509.Certificate)) Pair {
	t.Helper()
	template := template(t, "runner")
	template.DNSNames, template.IPAddresses = []string{"runner.example"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, change := range changes {
		change(template)
	}
	key := key(t)
	_, cert := a.sign(t, template, &key.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{Cert: cert, Key: text("PRIVATE KEY", der), Serial: template.SerialNumber.String()}
}

// Write writes text to name in dir and returns its path.
func Write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate, public *ecdsa.PublicKey) (*x509.Certificate, string) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, text("CERTIFICATE", der)
}

func template(t testing.TB, name string) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-life), NotAfter: time.Now().Add(life),
	}
}

func key(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func text(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
