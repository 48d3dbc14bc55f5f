package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

// TestWhoIsServed has callers and servers that the other side does not trust.
func TestWhoIsServed(t *testing.T) {
	ours, others := certs.New(t), certs.New(t)
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	onlyServes := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for name, test := range map[string]struct {
		callers    string // authorities of callers
		caller     certs.Pair
		roots      string
		serverName string
		// wrong is what the caller says, refused what the server's log does: on its
		// own side each knows best.
		wrong, refused string
	}{
		"TLS":                        {roots: ours.PEM},
		"TLS, by a name":             {roots: ours.PEM, serverName: "runner.example"},
		"TLS, of one with too much":  {roots: ours.PEM, caller: others.Pair(t)},
		"another name":               {roots: ours.PEM, serverName: "gateway.example", wrong: "gateway.example"},
		"another authority":          {roots: others.PEM, wrong: "unknown authority"},
		"the system's authorities":   {wrong: "certificate"},
		"several authorities":        {roots: others.PEM + ours.PEM},
		"mutual":                     {callers: ours.PEM, caller: ours.Pair(t), roots: ours.PEM},
		"mutual, several":            {callers: others.PEM + ours.PEM, caller: ours.Pair(t), roots: ours.PEM},
		"no certificate":             {callers: ours.PEM, roots: ours.PEM, refused: "didn't provide a certificate"},
		"a certificate of others":    {callers: ours.PEM, caller: others.Pair(t), roots: ours.PEM, refused: "unknown authority"},
		"an expired certificate":     {callers: ours.PEM, caller: ours.Pair(t, expired), roots: ours.PEM, refused: "expired"},
		"a certificate for a server": {callers: ours.PEM, caller: ours.Pair(t, onlyServes), roots: ours.PEM, refused: "incompatible key usage"},
	} {
		t.Run(name, func(t *testing.T) {
			served := ours.Pair(t)
			s := serve(t, filesOf(t, served, test.callers))
			conn := s.dial(t, client(t, filesOf(t, test.caller, test.roots), test.serverName))
			if test.wrong+test.refused == "" {
				wantSerial(t, conn, served)
				return
			}
			if _, err := ask(t, conn); err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("the error is %v", err)
			}
			line := s.debugLine(t)
			if problem := fmt.Sprint(line.Data["error"]); !strings.Contains(problem, test.refused) || line.Data["peer"] == nil {
				t.Errorf("the log is %v", line.Data)
			}
			if s.lines(logrus.InfoLevel)+s.lines(logrus.WarnLevel) > 0 {
				t.Errorf("the log is %v", s.log.AllEntries())
			}
		})
	}
}

// debugLine waits for the first line about a handshake.
func (s *server) debugLine(t *testing.T) *logrus.Entry {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, line := range s.log.AllEntries() {
			if line.Level == logrus.DebugLevel {
				return line
			}
		}
	}
	t.Fatal("the log has no line about the handshake")
	return nil
}

// TestVersions: 1.3 for whoever has it, and nothing below 1.2.
func TestVersions(t *testing.T) {
	ours := certs.New(t)
	s := serve(t, filesOf(t, ours.Pair(t), ""))
	for most, want := range map[uint16]uint16{tls.VersionTLS13: tls.VersionTLS13, tls.VersionTLS12: tls.VersionTLS12, tls.VersionTLS11: 0, tls.VersionTLS10: 0} {
		got, err := s.rawVersion(t, ours.PEM, most)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("with at most %s it is %s, %v", tls.VersionName(most), tls.VersionName(got), err)
		}
	}
}

// TestExpiredIsWarnedOf, once, and used: the clock may be what is wrong.
func TestExpiredIsWarnedOf(t *testing.T) {
	ours := certs.New(t)
	for name, change := range map[string]func(*x509.Certificate){
		"has expired":        func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"does not count yet": func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			files := filesOf(t, ours.Pair(t, change), "")
			s := serve(t, files)
			for range 2 {
				if _, err := ask(t, s.dial(t, client(t, filesOf(t, certs.Pair{}, ours.PEM), ""))); err == nil || !strings.Contains(err.Error(), "expired or is not yet valid") {
					t.Errorf("the error is %v", err)
				}
			}
			if got := s.lines(logrus.WarnLevel); got != 1 || !strings.Contains(s.log.AllEntries()[0].Message, "tls.cert "+name) {
				t.Errorf("%d lines warn: %v", got, s.log.AllEntries())
			}
			renewed := ours.Pair(t)
			write(t, files.Cert, renewed.Cert)
			write(t, files.Key, renewed.Key)
			wantSerial(t, s.dial(t, client(t, filesOf(t, certs.Pair{}, ours.PEM), "")), renewed)
		})
	}
}
