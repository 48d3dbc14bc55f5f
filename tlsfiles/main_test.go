package tlsfiles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// filesOf are files in a folder of their own with p and the certificate of ca; none
// where they are empty.
func filesOf(t *testing.T, p certs.Pair, ca string) Files {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) File {
		f := File{Setting: "tls." + name}
		if text != "" {
			f.Path = filepath.Join(dir, name+".pem")
			write(t, f, text)
		}
		return f
	}
	return Files{Cert: file("cert", p.Cert), Key: file("key", p.Key), CA: file("ca", ca)}
}

func write(t *testing.T, f File, text string) {
	t.Helper()
	if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// server is a gRPC server on loopback and its log.
type server struct {
	address string
	log     *logtest.Hook
}

func serve(t *testing.T, files Files) *server {
	t.Helper()
	log, lines := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	secured, err := Server(files, log)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(secured))
	healthv1.RegisterHealthServer(s, health.NewServer())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &server{address: listener.Addr().String(), log: lines}
}

// lines counts those of a level.
func (s *server) lines(level logrus.Level) int {
	n := 0
	for _, line := range s.log.AllEntries() {
		if line.Level == level {
			n++
		}
	}
	return n
}

// client returns credentials of a client.
func client(t *testing.T, files Files, serverName string) credentials.TransportCredentials {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	secured, err := Client(files, serverName, log)
	if err != nil {
		t.Fatal(err)
	}
	return secured
}

// dial opens a connection.
func (s *server) dial(t *testing.T, secured credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, MaxDelay: 10 * time.Millisecond}, MinConnectTimeout: 5 * time.Second}
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(secured), grpc.WithConnectParams(soon))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask makes a call and returns the serial number of the server's certificate.
func ask(t *testing.T, conn *grpc.ClientConn) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var other peer.Peer
	if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.Peer(&other)); err != nil {
		return "", err
	}
	info, ok := other.AuthInfo.(credentials.TLSInfo)
	if !ok {
		t.Fatalf("the connection has %T", other.AuthInfo)
	}
	return info.State.PeerCertificates[0].SerialNumber.String(), nil
}

// wantSerial asks on a connection.
func wantSerial(t *testing.T, conn *grpc.ClientConn, want certs.Pair) {
	t.Helper()
	got, err := ask(t, conn)
	if err != nil {
		t.Fatal(err)
	}
	if got != want.Serial {
		t.Errorf("the certificate is %s, not %s", got, want.Serial)
	}
}

// rawVersion shakes hands as a client that knows no version above most.
func (s *server) rawVersion(t *testing.T, roots string, most uint16) (uint16, error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(roots))
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: most, NextProtos: []string{"h2"}}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().Version, nil
}
