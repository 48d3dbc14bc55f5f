//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// inside runs a script in the main container and returns what it prints, without the
// line breaks at its end. It asks the
// container runtime of the devcluster, so that what is tested is not what tells.
func (r *runner) inside(t *testing.T, id, script string) string {
	t.Helper()
	container := ""
	for _, c := range r.inspect(t, id).GetContainers() {
		if c.GetRole() == runnerv1.ContainerRole_CONTAINER_ROLE_MAIN {
			container = strings.TrimPrefix(c.GetContainerId(), "containerd://")
		}
	}
	dir := filepath.Dir(os.Getenv("KUBECONFIG"))
	devcluster := filepath.Join(dir, "bin", "devcluster")
	if _, err := os.Stat(devcluster); err != nil {
		t.Skipf("only a devcluster shows what is in a container: %v", err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), devcluster, "crictl", "--", "exec", "-s", container, "sh", "-c", script)
	cmd.Stderr, cmd.Env = &stderr, append(os.Environ(), "DEVCLUSTER_DIR="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("in the container of %s: %v\n%s%s", id, err, out, stderr.String())
	}
	return strings.TrimRight(string(out), "\n") // crictl adds some
}
