package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority is the cluster's certificate authority and the folder it fills.
type authority struct {
	dir    string
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	pem    []byte
	serial int64
}

// identity is one key pair with a certificate that is good for both ends of a
// connection.
type identity struct {
	name string   // of the files
	user string   // common name: the user that the API server sees
	org  []string // the user's groups
	sans []string // names and addresses of a server
}

func identities() []identity {
	return []identity{
		{name: "apiserver", user: "kube-apiserver", sans: []string{"127.0.0.1", "localhost", nodeIP, serviceIP, "kubernetes",
			"kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}},
		{name: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client", org: []string{"system:masters"}},
		{name: "kubelet", user: "system:node:" + nodeName, org: []string{"system:nodes"}, sans: []string{"127.0.0.1", nodeName, nodeIP}},
		{name: "controller-manager", user: "system:kube-controller-manager"},
		{name: "scheduler", user: "system:kube-scheduler"},
		{name: "proxy", user: "system:kube-proxy"},
		{name: "admin", user: "devcluster-admin", org: []string{"system:masters"}},
	}
}

// writePKI fills the cluster's pki folder: the authority, a key pair and a
// kubeconfig for each identity, the keys of service accounts. The admin's
// kubeconfig for users of the machine is at s.kubeconfig().
func writePKI(s settings) error {
	ca, err := newAuthority(s.path("etc", "pki"))
	if err != nil {
		return fmt.Errorf("making the certificate authority: %w", err)
	}
	for _, id := range identities() {
		cert, key, err := ca.issue(id)
		if err != nil {
			return fmt.Errorf("issuing the certificate of %s: %w", id.name, err)
		}
		path := s.pki(id.name + ".kubeconfig")
		if err := os.WriteFile(path, kubeconfig(s.internalAPI(), ca.pem, cert, key), 0o600); err != nil {
			return err
		}
		if id.name != "admin" {
			continue
		}
		if err := os.WriteFile(s.kubeconfig(), kubeconfig(s.hostAPI(), ca.pem, cert, key), 0o600); err != nil {
			return err
		}
	}
	return ca.serviceAccountKeys()
}

func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ca := &authority{dir: dir}
	var err error
	if ca.key, _, err = ca.newKey("ca"); err != nil {
		return nil, err
	}
	t := ca.template(pkix.Name{CommonName: "devcluster-ca"})
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	ca.cert = t // its own issuer
	if ca.pem, err = ca.sign("ca", t, ca.key); err != nil {
		return nil, err
	}
	return ca, nil
}

func (ca *authority) template(subject pkix.Name) *x509.Certificate {
	ca.serial++
	now := time.Now().Add(-time.Hour) // clocks of containers may be a little late
	return &x509.Certificate{SerialNumber: big.NewInt(ca.serial), Subject: subject, NotBefore: now, NotAfter: now.AddDate(1, 0, 0)}
}

func (ca *authority) issue(id identity) (cert, key []byte, err error) {
	k, key, err := ca.newKey(id.name)
	if err != nil {
		return nil, nil, err
	}
	t := ca.template(pkix.Name{CommonName: id.user, Organization: id.org})
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, san := range id.sans {
		if ip := net.ParseIP(san); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, san)
		}
	}
	cert, err = ca.sign(id.name, t, k)
	return cert, key, err
}

func (ca *authority) sign(name string, t *x509.Certificate, k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, &k.PublicKey, ca.key)
	if err != nil {
		return nil, err
	}
	return ca.write(name+".crt", "CERTIFICATE", der)
}

func (ca *authority) newKey(name string) (*ecdsa.PrivateKey, []byte, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, nil, err
	}
	b, err := ca.write(name+".key", "EC PRIVATE KEY", der)
	return k, b, err
}

func (ca *authority) write(name, kind string, der []byte) ([]byte, error) {
	b := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	return b, os.WriteFile(filepath.Join(ca.dir, name), b, 0o600)
}

// serviceAccountKeys writes the pair that signs and checks service accounts' tokens.
func (ca *authority) serviceAccountKeys() error {
	k, _, err := ca.newKey("sa")
	if err != nil {
		return fmt.Errorf("making the key of service accounts: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding the key of service accounts: %w", err)
	}
	_, err = ca.write("sa.pub", "PUBLIC KEY", der)
	return err
}

func kubeconfig(addr string, ca, cert, key []byte) []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: devcluster
clusters: [{name: devcluster, cluster: {server: "https://%s", certificate-authority-data: %s}}]
users: [{name: devcluster, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: devcluster, context: {cluster: devcluster, user: devcluster}}]
`, addr, b64(ca), b64(cert), b64(key))
}
