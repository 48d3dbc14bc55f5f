package config

import (
	"errors"
	"net/netip"
	"strings"
)

// CheckServing reports what keeps a runner from being served with c. Load lets it
// pass: commands that need no runner read the same file, without the environment.
func (c Config) CheckServing() error {
	var problems []error
	if c.Ziti.Enabled && !c.InPlatform() {
		problems = append(problems, named("ziti.enabled", "needs gateway.service_token (environment SERVICE_TOKEN), with which the runner enrols"))
	}
	// Beside the overlay only health and readiness are served here.
	host, _ := splitAddress(c.GRPC.Address)
	if c.TLS.Cert == "" && !c.GRPC.Plaintext && !c.Ziti.Enabled && !isLoopback(host) {
		problems = append(problems, named("grpc.address", noTLS))
	}
	return errors.Join(problems...)
}

// checkTLS reports files of which one is nothing without the other.
func (c *Config) checkTLS(require func(ok bool, key, problem string)) {
	require(c.TLS.Key != "" || c.TLS.Cert == "", "tls.key", "is required beside tls.cert: the file of its private key")
	require(c.TLS.Cert != "" || c.TLS.Key == "", "tls.cert", "is required beside tls.key: the file of its certificate")
	require(c.TLS.ClientCA == "" || c.TLS.Cert+c.TLS.Key != "", "tls.client_ca", "has no effect without tls.cert and tls.key")
	require(!c.GRPC.Plaintext || c.TLS == TLS{}, "grpc.plaintext", "cannot be true beside tls.cert, tls.key and tls.client_ca")
	require(c.Gateway.CA == "" || c.Gateway.TLS, "gateway.ca", "has no effect unless gateway.tls is true")
}

const noTLS = `is not on loopback, and without TLS all that callers send, secrets too, would cross the network in the clear. Do one of these:
  - give tls.cert and tls.key (environment K8SRUNNER_TLS_CERT and K8SRUNNER_TLS_KEY)
  - listen on loopback: 127.0.0.1:50051
  - where the network itself is trusted, set grpc.plaintext to true (--grpc-plaintext=true, environment K8SRUNNER_GRPC_PLAINTEXT)`

// isLoopback reports whether nobody outside this machine, or this Pod, reaches host.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return strings.EqualFold(host, "localhost")
	}
	return ip.Unmap().IsLoopback()
}
