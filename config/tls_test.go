package config

import (
	"strings"
	"testing"
)

// TestFilesOfTLSBelongTogether: half of a pair is refused, and what would be without
// effect.
func TestFilesOfTLSBelongTogether(t *testing.T) {
	const cert, key, clientCA, plaintext = "K8SRUNNER_TLS_CERT=/c", "K8SRUNNER_TLS_KEY=/k", "K8SRUNNER_TLS_CLIENT_CA=/a", "K8SRUNNER_GRPC_PLAINTEXT=true"
	for name, test := range map[string]struct {
		environ []string
		// wrong is the setting that is named; empty if none is.
		wrong string
	}{
		"a pair":              {environ: []string{cert, key}},
		"mutual":              {environ: []string{cert, key, clientCA}},
		"no key":              {environ: []string{cert}, wrong: "tls.key"},
		"no certificate":      {environ: []string{key}, wrong: "tls.cert"},
		"callers' alone":      {environ: []string{clientCA}, wrong: "tls.client_ca"},
		"and plaintext":       {environ: []string{cert, key, plaintext}, wrong: "grpc.plaintext"},
		"gateway":             {environ: []string{"K8SRUNNER_GATEWAY_TLS=true", "K8SRUNNER_GATEWAY_CA=/a"}},
		"gateway without TLS": {environ: []string{"K8SRUNNER_GATEWAY_CA=/a"}, wrong: "gateway.ca"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := check(t, Sources{Environ: append(test.environ, "KUBE_NAMESPACE=workloads")})
			if test.wrong != "" {
				wantNamed(t, inEnv, err, test.wrong, "")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPlaintextStaysOnLoopback, unless it is wanted, or served beside the overlay.
func TestPlaintextStaysOnLoopback(t *testing.T) {
	overlay := []string{"ZITI_ENABLED=true", "SERVICE_TOKEN=" + token}
	for address, loopback := range map[string]bool{
		":50051": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "runner:1": false, "localhost.example:1": false, "[::ffff:10.0.0.1]:1": false,
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
	} {
		for name, environ := range map[string][]string{
			"alone":         {},
			"in a platform": {"SERVICE_TOKEN=" + token},
			"TLS":           {"K8SRUNNER_TLS_CERT=/c", "K8SRUNNER_TLS_KEY=/k"},
			"wanted":        {"K8SRUNNER_GRPC_PLAINTEXT=true"},
			"overlay":       overlay,
		} {
			t.Run(address+" "+name, func(t *testing.T) {
				c, err := check(t, Sources{Environ: append(environ, "KUBE_NAMESPACE=workloads", "GRPC_ADDR="+address)})
				if err != nil {
					t.Fatal(err)
				}
				err = c.CheckServing()
				if loopback || (name != "alone" && name != "in a platform") {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantNamed(t, inEnv, err, "grpc.address", "")
				for _, way := range []string{"tls.cert", "K8SRUNNER_TLS_KEY", "127.0.0.1:50051", "grpc.plaintext", "--grpc-plaintext", "K8SRUNNER_GRPC_PLAINTEXT"} {
					if err != nil && !strings.Contains(err.Error(), way) {
						t.Errorf("it does not name %s: %v", way, err)
					}
				}
			})
		}
	}
}

// TestOverlayNeedsToken: the enrolment makes the identity of the overlay.
func TestOverlayNeedsToken(t *testing.T) {
	c, err := load(t, made{inEnv: {"ziti.enabled": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	wantNamed(t, inEnv, c.CheckServing(), "ziti.enabled", "")
	c.Gateway.ServiceToken = token
	if err := c.CheckServing(); err != nil {
		t.Error(err)
	}
}

func TestInPlatform(t *testing.T) {
	c := Default()
	if c.InPlatform() {
		t.Error("without a token it is")
	}
	c.Gateway.ServiceToken = token
	if !c.InPlatform() {
		t.Error("with a token it is not")
	}
}
