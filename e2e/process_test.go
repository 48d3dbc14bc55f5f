//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestProcess: what a request says reaches the process byte for byte.
func TestProcess(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	values := []string{
		"x", "$(A)", "$$(A)", "cost $5", "$", "yes", "0123", "1e3", "null", "", " x ", "a: b", "# x",
		"two\nlines\n", "naïve 日本 🚀", "x\"\n  securityContext: {privileged: true}", "{{ .Name }}", "'", `\`, "\t",
	}
	req := sleeper()
	// Each argument and each variable is printed with a byte that neither holds.
	req.Main = shell(`pwd; printf '%s\001' "$@"; printf '\002'; i=0; while [ $i -lt $# ]; do eval "printf '%s\001' \"\$V_$i\""; i=$((i+1)); done`)
	req.Main.Cmd = append(append(req.Main.Cmd, "sh"), values...)
	req.Main.WorkingDir = "/w/$(A) $HOME"
	req.Volumes = []*runnerv1.VolumeSpec{{Name: "w", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL}}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "w", MountPath: "/w"}}
	req.Main.Env = []*runnerv1.EnvVar{{Name: "A", Value: "expanded"}}
	for i, v := range values {
		req.Main.Env = append(req.Main.Env, &runnerv1.EnvVar{Name: fmt.Sprintf("V_%d", i), Value: v})
	}
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the process has ended", ended)
	output := r.containerLog(t, req.GetWorkloadId(), "main")
	dir, rest, _ := strings.Cut(output, "\n")
	if dir != req.GetMain().GetWorkingDir() {
		t.Errorf("the process ran in %q, not in %q", dir, req.GetMain().GetWorkingDir())
	}
	args, env, _ := strings.Cut(rest, "\x02")
	for name, got := range map[string]string{"arguments": args, "environment": env} {
		if diff := cmp.Diff(values, strings.Split(strings.TrimSuffix(got, "\x01"), "\x01")); diff != "" {
			t.Errorf("%s (-asked +received):\n%s", name, diff)
		}
	}
}

// TestEntrypoint: entrypoint replaces the image's, cmd becomes its arguments.
func TestEntrypoint(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main = &runnerv1.ContainerSpec{Image: "busybox", Entrypoint: "/bin/echo", Cmd: []string{"a b", "c"}}
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the process has ended", ended)
	if got := r.containerLog(t, req.GetWorkloadId(), "main"); got != "a b c\n" {
		t.Errorf("the process printed %q", got)
	}
}

// TestShared: containers of a workload share its volumes; a read-only root and
// a read-only mount are so; the last of two variables wins; no token is there.
func TestShared(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Volumes = []*runnerv1.VolumeSpec{{Name: "work", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL, Size: "8Mi"}}
	write := shell("echo from-init >/work/f")
	write.Mounts = []*runnerv1.VolumeMount{{Volume: "work", MountPath: "/work"}}
	req.InitContainers = []*runnerv1.ContainerSpec{write}
	req.Main = shell(`cat /srv/f; touch /srv/g 2>/dev/null && echo mount-writable; touch /x 2>/dev/null && echo root-writable; echo "FOO=$FOO"; ls /var/run/secrets 2>/dev/null; env | grep -c _SERVICE_HOST`)
	req.Main.AdditionalProperties = map[string]string{"read_only_root_filesystem": "true"}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "work", MountPath: "/srv", ReadOnly: true}}
	req.Main.Env = []*runnerv1.EnvVar{{Name: "FOO", Value: "1"}, {Name: "FOO", Value: "2"}}
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the process has ended", ended)
	// Kubernetes tells every Pod where the API server is: one service.
	if diff := cmp.Diff("from-init\nFOO=2\n1\n", r.containerLog(t, req.GetWorkloadId(), "main")); diff != "" {
		t.Errorf("the process saw (-want +got):\n%s", diff)
	}
}
