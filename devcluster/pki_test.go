package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPKI(t *testing.T) {
	s := settings{Dir: t.TempDir(), APIPort: 16443}
	if err := writePKI(s); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority's certificate is none")
	}
	tests := []struct {
		file, user, group string
		servers           []string // names under which it serves
	}{
		{file: "apiserver", user: "kube-apiserver", servers: []string{"127.0.0.1", nodeIP, serviceIP, "kubernetes.default.svc"}},
		{file: "kubelet", user: "system:node:devnode", group: "system:nodes", servers: []string{nodeIP, nodeName}},
		{file: "admin", user: "devcluster-admin", group: "system:masters"},
		{file: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client", group: "system:masters"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			pair, err := tls.LoadX509KeyPair(s.pki(tt.file+".crt"), s.pki(tt.file+".key"))
			if err != nil {
				t.Fatal(err)
			}
			cert := pair.Leaf
			if cert.Subject.CommonName != tt.user || strings.Join(cert.Subject.Organization, ",") != tt.group {
				t.Errorf("issued to %s", cert.Subject)
			}
			opts := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
			if _, err := cert.Verify(opts); err != nil {
				t.Error(err)
			}
			for _, name := range tt.servers {
				opts := x509.VerifyOptions{Roots: roots, DNSName: name}
				if _, err := cert.Verify(opts); err != nil {
					t.Errorf("as %s: %v", name, err)
				}
			}
		})
	}
}

func TestKubeconfigs(t *testing.T) {
	tests := []struct {
		name               string
		simulated          bool
		outside, component string // addresses of the API server
	}{
		{name: "real", outside: "https://127.0.0.1:16443", component: "https://10.244.0.1:6443"},
		{name: "simulated", simulated: true, outside: "https://127.0.0.1:16443", component: "https://127.0.0.1:16443"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := settings{Dir: t.TempDir(), APIPort: 16443, Simulated: tt.simulated}
			if err := writePKI(s); err != nil {
				t.Fatal(err)
			}
			for path, addr := range map[string]string{s.kubeconfig(): tt.outside, s.pki("scheduler.kubeconfig"): tt.component} {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(b), `server: "`+addr+`"`) {
					t.Errorf("%s does not name %s", filepath.Base(path), addr)
				}
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: mode %v, %v", filepath.Base(path), info.Mode(), err)
				}
			}
		})
	}
}
