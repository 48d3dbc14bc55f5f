package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"github.com/agynio/k8s-runner/tlsfiles"
	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

// fakeWithTLS serves a fake runner with TLS, which asks callers for certificates of
// the authorities in clientCA, if there is that file.
func fakeWithTLS(t *testing.T, cert, key, clientCA string) (address string) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	secured, err := tlsfiles.Server(tlsfiles.Files{Cert: tlsfiles.File{Path: cert}, Key: tlsfiles.File{Path: key}, CA: tlsfiles.File{Path: clientCA}}, log)
	if err != nil {
		t.Fatal(err)
	}
	_, address, stop, err := newFakeRunner(false, grpc.Creds(secured))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}

// TestClientTLS has a client and a runner that fit, and those that do not: each error
// says what to do. Flags go before the environment.
func TestClientTLS(t *testing.T) {
	ours, others, dir := certs.New(t), certs.New(t), t.TempDir()
	mine, stranger := ours.Pair(t), others.Pair(t)
	ca, otherCA := certs.Write(t, dir, "ca", ours.PEM), certs.Write(t, dir, "other-ca", others.PEM)
	cert, key := certs.Write(t, dir, "cert", mine.Cert), certs.Write(t, dir, "key", mine.Key)
	otherCert, otherKey := certs.Write(t, dir, "other-cert", stranger.Cert), certs.Write(t, dir, "other-key", stranger.Key)
	_, plain, stop, err := newFakeRunner(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	one, mutual := fakeWithTLS(t, cert, key, ""), fakeWithTLS(t, cert, key, ca)
	for name, test := range map[string]struct {
		address string
		args    []string
		env     map[string]string
		code    int
		want    []string
	}{
		"plain":             {address: plain},
		"TLS":               {address: one, args: []string{"--tls", "--tls-ca", ca}},
		"implied":           {address: one, args: []string{"--tls-ca", ca}},
		"by a name":         {address: one, args: []string{"--tls-ca", ca, "--tls-server-name", "runner.example"}},
		"mutual":            {address: mutual, args: []string{"--tls-ca", ca, "--tls-cert", cert, "--tls-key", key}},
		"environment":       {address: mutual, env: map[string]string{"RUNNER_TLS_CA": ca, "RUNNER_TLS_CERT": cert, "RUNNER_TLS_KEY": key, "RUNNER_TLS_SERVER_NAME": "runner.example", "RUNNER_TLS": "true"}},
		"flags before":      {address: one, args: []string{"--tls-ca", ca}, env: map[string]string{"RUNNER_TLS_CA": otherCA}},
		"TLS is off":        {address: plain, args: []string{"--tls=false"}, env: map[string]string{"RUNNER_TLS": "1", "RUNNER_TLS_CA": ca}},
		"TLS is off there":  {address: plain, env: map[string]string{"RUNNER_TLS": "false", "RUNNER_TLS_CA": ca}},
		"plain to TLS":      {address: one, code: exitUnavailable, want: []string{one, "try --tls"}},
		"plain to mutual":   {address: mutual, code: exitUnavailable, want: []string{"try --tls"}},
		"TLS to plain":      {address: plain, args: []string{"--tls"}, code: exitUnavailable, want: []string{plain, "speaks no TLS", "RUNNER_TLS"}},
		"system's roots":    {address: one, args: []string{"--tls"}, code: exitUnavailable, want: []string{"unknown authority", "--tls-ca"}},
		"another authority": {address: one, args: []string{"--tls-ca", otherCA}, code: exitUnavailable, want: []string{"unknown authority", "--tls-ca"}},
		"another name":      {address: one, args: []string{"--tls-ca", ca, "--tls-server-name", "x.example"}, code: exitUnavailable, want: []string{"not x.example", "--tls-server-name"}},
		"no certificate":    {address: mutual, args: []string{"--tls-ca", ca}, code: exitUnavailable, want: []string{"give --tls-cert and --tls-key"}},
		"wrong certificate": {address: mutual, args: []string{"--tls-ca", ca, "--tls-cert", otherCert, "--tls-key", otherKey}, code: exitUnavailable, want: []string{"refuse the certificate of --tls-cert"}},
		"half a pair":       {address: mutual, args: []string{"--tls-cert", cert}, code: exitUsage, want: []string{"--tls-key"}},
		"another key":       {address: mutual, args: []string{"--tls-cert", cert, "--tls-key", otherKey}, code: exitError, want: []string{"--tls-key (RUNNER_TLS_KEY)", otherKey, "is not the private key"}},
		"no file":           {address: one, env: map[string]string{"RUNNER_TLS_CA": "/no/such"}, code: exitError, want: []string{"--tls-ca (RUNNER_TLS_CA)", "/no/such"}},
		"no word":           {address: one, env: map[string]string{"RUNNER_TLS": "maybe"}, code: exitUsage, want: []string{"RUNNER_TLS"}},
		"nobody":            {address: "127.0.0.1:1", args: []string{"--tls"}, code: exitUnavailable, want: []string{"no runner answers at 127.0.0.1:1", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.env {
				t.Setenv(variable, value)
			}
			commands := [][]string{{"ps"}}
			if test.code != 0 {
				commands = append(commands, []string{"events"}) // a stream
			}
			for _, command := range commands {
				root := newRoot()
				root.SetArgs(append(append(command, "--address", test.address), test.args...))
				root.SetOut(&bytes.Buffer{})
				err := root.ExecuteContext(t.Context())
				if err == nil {
					if test.code != 0 {
						t.Errorf("%s succeeds", command)
					}
					continue
				}
				if got := exitCode(err); got != test.code {
					t.Errorf("%s: the exit code is %d: %v", command, got, err)
				}
				for _, want := range test.want {
					if !strings.Contains(report(err), want) {
						t.Errorf("%s: it does not say %q: %s", command, want, report(err))
					}
				}
			}
		})
	}
}

// TestLostConnectionIsNoTLS: a runner that dies is not one that refuses.
func TestLostConnectionIsNoTLS(t *testing.T) {
	for _, message := range []string{
		"error reading from server: EOF",
		"error reading from server: read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer",
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`,
		"shutting_down: this runner is ending",
	} {
		for _, to := range []endpoint{{}, {tls: true}, {tls: true, named: true}} {
			if got := to.advice(message); got != "" {
				t.Errorf("%+v: of %q it says %q", to, message, got)
			}
		}
	}
	if got := (endpoint{}).advice(`connection error: desc = "error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`); got != "" {
		t.Errorf("of a web server it says %q", got)
	}
}
