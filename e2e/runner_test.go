//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// build compiles the runner into dir and returns the path of the binary.
func build(ctx context.Context, dir string, race bool) (string, error) {
	binary := filepath.Join(dir, "k8s-runner")
	args := []string{"build", "-o", binary}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "../cmd/k8s-runner")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the runner: %w\n%s", err, out)
	}
	return binary, nil
}

// runner is a running k8s-runner and a client of it.
type runner struct {
	runnerv1.RunnerServiceClient
	conn      *grpc.ClientConn
	namespace string
	// account is the service account that the runner uses.
	account string
	address string
	log     *syncBuffer
	process *exec.Cmd
	exited  chan error
	// installed is the chart that runs it, with -chart.
	installed *installation
}

// startRunner starts the runner against namespace ns, with further flags, and
// waits until it is healthy. The test fails if its log shows a race or it does
// not stop cleanly.
func startRunner(t testing.TB, ns *namespace, flags ...string) *runner {
	t.Helper()
	r := launchRunner(t, ns, flags...)
	r.awaitHealthy(t)
	return r
}

// awaitHealthy waits until health says that it serves.
func (r *runner) awaitHealthy(t testing.TB) {
	t.Helper()
	eventually(t, 30*time.Second, "the runner is healthy", func() error {
		answer, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			return fmt.Errorf("%w\n%s", err, r.log)
		}
		if answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			return fmt.Errorf("health is %s", answer.GetStatus())
		}
		return nil
	})
}

// launchRunner is startRunner without the wait.
func launchRunner(t testing.TB, ns *namespace, flags ...string) *runner {
	t.Helper()
	if *throughChart {
		return installRunner(t, ns, flags)
	}
	r := launchProcess(t, ns, flags...)
	r.dial(t)
	return r
}

// launchProcess starts the binary, and no client.
func launchProcess(t testing.TB, ns *namespace, flags ...string) *runner {
	t.Helper()
	r := &runner{namespace: ns.name, account: ns.account, address: freeAddress(t), log: &syncBuffer{}, exited: make(chan error, 1)}
	args := []string{"serve", "--kube-namespace", ns.name, "--kube-kubeconfig", ns.kubeconfig, "--grpc-address", r.address, "--metrics-address", "127.0.0.1:0"}
	r.process = exec.Command(suite.binary, append(args, flags...)...)
	r.process.Stdout, r.process.Stderr = r.log, r.log
	r.process.Env = append(os.Environ(), "GORACE=halt_on_error=0")
	if err := r.process.Start(); err != nil {
		t.Fatalf("starting the runner: %v", err)
	}
	go func() { r.exited <- r.process.Wait() }()
	t.Cleanup(func() { r.stop(t) })
	return r
}

// dial makes the runner's client.
func (r *runner) dial(t testing.TB) {
	t.Helper()
	r.dialWith(t, insecure.NewCredentials())
}

func (r *runner) dialWith(t testing.TB, secured credentials.TransportCredentials) {
	t.Helper()
	r.conn = r.connect(t, secured)
	r.RunnerServiceClient = runnerv1.NewRunnerServiceClient(r.conn)
}

// connect makes a connection to the runner.
func (r *runner) connect(t testing.TB, secured credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	// By default a connection that is refused is tried again after a second.
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, MaxDelay: 20 * time.Millisecond}, MinConnectTimeout: 5 * time.Second}
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(secured), grpc.WithConnectParams(soon))
	if err != nil {
		t.Fatalf("dialling the runner: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// stop ends the runner as Kubernetes does and checks how it went.
func (r *runner) stop(t testing.TB) {
	t.Helper()
	if r.installed != nil {
		r.installed.stop(t)
	}
	if r.process == nil {
		return
	}
	_ = r.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-r.exited:
		if err != nil {
			t.Errorf("the runner ended with %v\n%s", err, r.log)
		}
	case <-time.After(20 * time.Second):
		_ = r.process.Process.Kill()
		t.Errorf("the runner did not end within 20 s of SIGTERM\n%s", r.log)
	}
	r.process = nil
	if strings.Contains(r.log.String(), "DATA RACE") {
		t.Errorf("the runner has a data race\n%s", r.log)
	}
}

// freeAddress is on an address of loopback from which nobody connects, so that no
// connection takes the port before the runner does.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// eventually waits until check returns nil.
func eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until %s: %v", limit, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// syncBuffer is a buffer that a process writes while a test reads.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
