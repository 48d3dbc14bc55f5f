//go:build e2e

package e2e

import (
	"strings"
	"testing"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const engineImage = "docker:27-dind"

// TestDocker: main reaches the daemon at its first try, and docker run works.
func TestDocker(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--capabilities-implementations", `{"docker":"privileged"}`)
	needEngine(t, r)
	req := sleeper()
	req.Capabilities = []string{"docker"}
	req.Main = shell(`set -e
docker version --format 'daemon {{.Server.Os}} at '$DOCKER_HOST
mkdir -p /tmp/root/bin && cp /bin/busybox /tmp/root/bin && tar -C /tmp/root -c . | docker import - inside >/dev/null
docker run --rm --network none inside /bin/busybox echo from inside`)
	req.Main.Image = engineImage
	resp := r.start(t, req)
	if sidecars := resp.GetContainers().GetSidecars(); len(sidecars) != 1 || sidecars[0].GetName() != "docker-daemon" {
		t.Errorf("the sidecars are %v", sidecars)
	}
	id := req.GetWorkloadId()
	r.await(t, id, "it has ended", ended)
	if got := r.containerLog(t, id, "main"); got != "daemon linux at tcp://localhost:2375\nfrom inside\n" {
		t.Errorf("it printed %q; the daemon printed\n%s", got, r.containerLog(t, id, "docker-daemon"))
	}
}

// TestDockerListensOnLoopback: no other Pod reaches a daemon, which takes
// anyone's orders.
func TestDockerListensOnLoopback(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--capabilities-implementations", `{"docker":"privileged"}`)
	needEngine(t, r)
	req := sleeper()
	req.Capabilities = []string{"docker"}
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the daemon is up", running)
	other := sleeper()
	other.Main = shell("nc -w 3 " + r.pod(t, req.GetWorkloadId()).Status.PodIP + " 2375 </dev/null 2>/dev/null && echo reached || echo refused")
	r.start(t, other)
	r.await(t, other.GetWorkloadId(), "it has ended", ended)
	if got := r.containerLog(t, other.GetWorkloadId(), "main"); got != "refused\n" {
		t.Errorf("it printed %q", got)
	}
}

// TestRootlessDocker shows what the node allows without the image of a rootless
// engine, which cannot be made of this machine's packages: the daemon's Pod is
// admitted, its container has the device and no privilege.
func TestRootlessDocker(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--capabilities-implementations", `{"docker":"rootless"}`,
		"--capabilities-docker-rootless-image", "busybox")
	req := sleeper()
	req.Capabilities = []string{"docker"}
	r.start(t, req)
	pod := r.pod(t, req.GetWorkloadId())
	daemon := pod.Spec.InitContainers[0]
	if daemon.SecurityContext.Privileged != nil || *daemon.RestartPolicy != "Always" {
		t.Errorf("the daemon's container is %v", daemon)
	}
	// busybox has no dockerd, so the container is made, with its device, and then
	// cannot start.
	r.await(t, req.GetWorkloadId(), "the container is made", func(w *runnerv1.InspectWorkloadResponse) bool {
		for _, c := range w.GetContainers() {
			if c.GetName() == "docker-daemon" {
				return strings.Contains(c.GetMessage(), "dockerd") || c.GetReason() == "CrashLoopBackOff"
			}
		}
		return false
	})
}

// needEngine skips a test on a cluster without the engine's image.
func needEngine(t *testing.T, r *runner) {
	t.Helper()
	probe := sleeper()
	probe.Main = shell("true")
	probe.Main.Image = engineImage
	r.start(t, probe)
	missing := false
	r.await(t, probe.GetWorkloadId(), "the engine's image is there or not", func(w *runnerv1.InspectWorkloadResponse) bool {
		reason := w.GetContainers()[0].GetReason()
		missing = reason == "ErrImagePull" || reason == "ImagePullBackOff"
		return missing || ended(w)
	})
	if missing {
		t.Skip("the cluster has no image " + engineImage + "; `devcluster image dind` makes it of Debian's packages")
	}
}
