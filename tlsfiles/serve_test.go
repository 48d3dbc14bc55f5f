package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// TestWhoIsServed has callers and servers that the other side does not trust.
func TestWhoIsServed(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	onlyServes := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for name, test := range map[string]struct {
		callers    string // authorities of callers
		caller     pair
		roots      string
		serverName string
		// wrong is what the caller says, refused what the server's log does: on its
		// own side each knows best.
		wrong, refused string
	}{
		"TLS":                        {roots: ours.pem},
		"TLS, by a name":             {roots: ours.pem, serverName: "runner.example"},
		"TLS, of one with too much":  {roots: ours.pem, caller: others.pair(t)},
		"another name":               {roots: ours.pem, serverName: "gateway.example", wrong: "gateway.example"},
		"another authority":          {roots: others.pem, wrong: "unknown authority"},
		"the system's authorities":   {wrong: "certificate"},
		"several authorities":        {roots: others.pem + ours.pem},
		"mutual":                     {callers: ours.pem, caller: ours.pair(t), roots: ours.pem},
		"mutual, several":            {callers: others.pem + ours.pem, caller: ours.pair(t), roots: ours.pem},
		"no certificate":             {callers: ours.pem, roots: ours.pem, refused: "didn't provide a certificate"},
		"a certificate of others":    {callers: ours.pem, caller: others.pair(t), roots: ours.pem, refused: "unknown authority"},
		"an expired certificate":     {callers: ours.pem, caller: ours.pair(t, expired), roots: ours.pem, refused: "expired"},
		"a certificate for a server": {callers: ours.pem, caller: ours.pair(t, onlyServes), roots: ours.pem, refused: "incompatible key usage"},
	} {
		t.Run(name, func(t *testing.T) {
			served := ours.pair(t)
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
	ours := newAuthority(t)
	s := serve(t, filesOf(t, ours.pair(t), ""))
	for most, want := range map[uint16]uint16{tls.VersionTLS13: tls.VersionTLS13, tls.VersionTLS12: tls.VersionTLS12, tls.VersionTLS11: 0, tls.VersionTLS10: 0} {
		got, err := s.rawVersion(t, ours.pem, most)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("with at most %s it is %s, %v", tls.VersionName(most), tls.VersionName(got), err)
		}
	}
}

// TestExpiredIsWarnedOf, once, and used: the clock may be what is wrong.
func TestExpiredIsWarnedOf(t *testing.T) {
	ours := newAuthority(t)
	for name, change := range map[string]func(*x509.Certificate){
		"has expired":        func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"does not count yet": func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			files := filesOf(t, ours.pair(t, change), "")
			s := serve(t, files)
			for range 2 {
				if _, err := ask(t, s.dial(t, client(t, filesOf(t, pair{}, ours.pem), ""))); err == nil || !strings.Contains(err.Error(), "expired or is not yet valid") {
					t.Errorf("the error is %v", err)
				}
			}
			if got := s.lines(logrus.WarnLevel); got != 1 || !strings.Contains(s.log.AllEntries()[0].Message, "tls.cert "+name) {
				t.Errorf("%d lines warn: %v", got, s.log.AllEntries())
			}
			renewed := ours.pair(t)
			write(t, files.Cert, renewed.cert)
			write(t, files.Key, renewed.key)
			wantSerial(t, s.dial(t, client(t, filesOf(t, pair{}, ours.pem), "")), renewed)
		})
	}
}
