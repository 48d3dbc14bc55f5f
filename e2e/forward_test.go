//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// forward listens on loopback, and connects whoever comes with an address of the cluster's
// network. It returns where it listens.
func forward(t testing.TB, to string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { pipe(ctx, t, conn, to) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		connections.Wait()
	})
	return listener.Addr().String()
}

// pipe lets a process on the node carry what goes over conn, until either side ends.
func pipe(ctx context.Context, t testing.TB, conn net.Conn, to string) {
	defer conn.Close()
	cmd := devcluster(ctx, t, "netns", "--", suite.probe, "pipe", to)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	cmd.Stdout = conn
	if cmd.Start() != nil {
		return
	}
	go func() {
		_, _ = io.Copy(stdin, conn)
		_ = stdin.Close()
	}()
	_ = cmd.Wait()
}

// buildProbe compiles the probe, static, so that it runs in every image.
func buildProbe(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "probe")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the probe: %w\n%s", err, out)
	}
	// Pods mount the folder, and run as anybody.
	return path, os.Chmod(dir, 0o755)
}
