//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/tlsfiles"
	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

// secured is a runner that wants certificates, and what its callers need.
type secured struct {
	*runner
	server, caller certs.Pair
	// files are the server's; flags those of the command line as a client.
	files  tlsfiles.Files
	flags  []string
	client credentials.TransportCredentials
}

// startSecured starts a runner with mutual TLS, which says all it can in its log.
func startSecured(t *testing.T, ours *certs.Authority) *secured {
	t.Helper()
	dir := t.TempDir()
	s := &secured{server: ours.Pair(t), caller: ours.Pair(t)}
	file := func(name, text string) tlsfiles.File {
		return tlsfiles.File{Setting: name, Path: certs.Write(t, dir, name, text)}
	}
	s.files = tlsfiles.Files{Cert: file("server.crt", s.server.Cert), Key: file("server.key", s.server.Key), CA: file("ca.crt", ours.PEM)}
	callers := tlsfiles.Files{Cert: file("caller.crt", s.caller.Cert), Key: file("caller.key", s.caller.Key), CA: s.files.CA}
	s.flags = []string{"--tls-ca", callers.CA.Path, "--tls-cert", callers.Cert.Path, "--tls-key", callers.Key.Path}
	s.client = clientOf(t, callers)
	s.runner = launchProcess(t, newNamespace(t), "--log-level", "trace",
		"--tls-cert", s.files.Cert.Path, "--tls-key", s.files.Key.Path, "--tls-client-ca", s.files.CA.Path)
	s.dialWith(t, s.client)
	s.awaitHealthy(t)
	return s
}

func clientOf(t *testing.T, files tlsfiles.Files) credentials.TransportCredentials {
	t.Helper()
	made, err := tlsfiles.Client(files, "", logrus.StandardLogger())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// command runs the binary as a client with the given TLS.
func (s *secured) command(t *testing.T, flags []string, args ...string) (string, error) {
	t.Helper()
	args = append(append([]string{args[0], "--address", s.address}, flags...), args[1:]...)
	out, err := exec.CommandContext(t.Context(), suite.binary, args...).CombinedOutput()
	return string(out), err
}

// serial asks over conn, and returns the number of the runner's certificate.
func serial(t *testing.T, conn *grpc.ClientConn) string {
	t.Helper()
	var runner peer.Peer
	_, err := runnerv1.NewRunnerServiceClient(conn).Ready(t.Context(), &runnerv1.ReadyRequest{}, grpc.Peer(&runner))
	if err != nil {
		t.Fatal(err)
	}
	return runner.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.String()
}

// TestMutualTLS starts a workload, runs a command in it and follows its log, all with
// certificates; that of the runner is renewed meanwhile. Who has none of ours is told
// what to do, and no key is in any log.
func TestMutualTLS(t *testing.T) {
	ours, others := certs.New(t), certs.New(t)
	s := startSecured(t, ours)
	req := sleeper()
	req.Main = shell(`trap 'exit 0' TERM; i=0; while :; do i=$((i+1)); echo line $i; usleep 50000; done`)
	id := req.GetWorkloadId()
	s.start(t, req)
	s.await(t, id, "it runs", running)
	if out, err := s.command(t, s.flags, "exec", id, "echo", "hello"); err != nil || out != "hello\n" {
		t.Errorf("exec ends with %v and %q", err, out)
	}
	follow, listed := s.follow(t, id), &syncBuffer{}
	cli := exec.CommandContext(t.Context(), suite.binary, slices.Concat([]string{"logs", "-f", "--address", s.address}, s.flags, []string{id})...)
	cli.Stdout, cli.Stderr = listed, listed
	if err := cli.Start(); err != nil {
		t.Fatal(err)
	}
	both := func() int { return min(follow.lines(), strings.Count(listed.String(), "\n")) }
	wantMore := func(what string) {
		t.Helper()
		before := max(follow.lines(), strings.Count(listed.String(), "\n"))
		eventually(t, 30*time.Second, what, func() error {
			if now := both(); now <= before+5 {
				return fmt.Errorf("there are %d lines, and were %d\n%s", now, before, last(listed.String(), 200))
			}
			return nil
		})
	}
	wantMore("the log is followed")

	renewed := ours.Pair(t)
	overwrite(t, s.files.Cert, renewed.Cert) // does not fit the key yet
	if got := serial(t, s.connect(t, s.client)); got != s.server.Serial {
		t.Errorf("with half a pair the certificate is %s, not %s", got, s.server.Serial)
	}
	overwrite(t, s.files.Key, renewed.Key)
	if got := serial(t, s.connect(t, s.client)); got != renewed.Serial {
		t.Errorf("renewed, the certificate is %s, not %s", got, renewed.Serial)
	}
	if got := serial(t, s.conn); got != s.server.Serial {
		t.Errorf("the connection from before has the certificate %s, not %s", got, s.server.Serial)
	}
	wantMore("the log is followed on the connection from before")

	s.wantRefusals(t, others)
	if _, err := s.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: id, TimeoutSec: 5}); err != nil {
		t.Error(err)
	}
	follow.wait(t, time.Minute)
	_ = cli.Wait() // that the workload was deleted is an error to it
	s.stop(t)
	log := s.log.String()
	for what, n := range map[string]int{"TLS files are refused": 1, "TLS files have changed": 1} {
		if got := strings.Count(log, what); got != n {
			t.Errorf("%q is %d times in the log\n%s", what, got, log)
		}
	}
	for _, key := range []string{s.server.Key, s.caller.Key, renewed.Key} {
		for line := range strings.Lines(key) {
			if line = strings.TrimSpace(line); strings.Contains(log+listed.String(), line) {
				t.Errorf("%q of a key is in a log", line)
			}
		}
	}
}

func overwrite(t *testing.T, file tlsfiles.File, text string) {
	t.Helper()
	certs.Write(t, filepath.Dir(file.Path), filepath.Base(file.Path), text)
}

// wantRefusals has callers without TLS, without a certificate, and with one of others.
func (s *secured) wantRefusals(t *testing.T, others *certs.Authority) {
	t.Helper()
	dir, stranger := t.TempDir(), others.Pair(t)
	ca := tlsfiles.File{Path: s.files.CA.Path}
	wrong := tlsfiles.Files{CA: ca, Cert: tlsfiles.File{Path: certs.Write(t, dir, "crt", stranger.Cert)}, Key: tlsfiles.File{Path: certs.Write(t, dir, "key", stranger.Key)}}
	for name, test := range map[string]struct {
		client credentials.TransportCredentials
		flags  []string
		want   string
	}{
		"no TLS":         {insecure.NewCredentials(), nil, "try --tls"},
		"no certificate": {clientOf(t, tlsfiles.Files{CA: ca}), []string{"--tls-ca", ca.Path}, "give --tls-cert and --tls-key"},
		"another":        {clientOf(t, wrong), []string{"--tls-ca", ca.Path, "--tls-cert", wrong.Cert.Path, "--tls-key", wrong.Key.Path}, "refuse the certificate"},
	} {
		_, err := runnerv1.NewRunnerServiceClient(s.connect(t, test.client)).Ready(t.Context(), &runnerv1.ReadyRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("with %s the call ends with %v", name, err)
		}
		if out, err := s.command(t, test.flags, "ps"); err == nil || !strings.Contains(out, test.want) {
			t.Errorf("with %s the client ends with %v and %s", name, err, out)
		}
	}
	if n := strings.Count(s.log.String(), "no TLS connection came about"); n < 6 {
		t.Errorf("%d refusals are in the log\n%s", n, s.log)
	}
}

// TestServerTLS: without an authority of callers everyone is served, which the log
// says.
func TestServerTLS(t *testing.T) {
	ours, dir := certs.New(t), t.TempDir()
	server := ours.Pair(t)
	ca := certs.Write(t, dir, "ca", ours.PEM)
	s := &secured{runner: launchProcess(t, newNamespace(t),
		"--tls-cert", certs.Write(t, dir, "crt", server.Cert), "--tls-key", certs.Write(t, dir, "key", server.Key))}
	s.dialWith(t, clientOf(t, tlsfiles.Files{CA: tlsfiles.File{Path: ca}}))
	s.awaitHealthy(t)
	if out, err := s.command(t, []string{"--tls-ca", ca}, "ps", "-q"); err != nil || out != "" {
		t.Errorf("ps ends with %v and %q", err, out)
	}
	if !strings.Contains(s.log.String(), "every caller") {
		t.Errorf("the log does not say who is served\n%s", s.log)
	}
}
