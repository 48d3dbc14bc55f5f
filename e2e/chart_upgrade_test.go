//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestChartUpgrade: a changed template counts without a restart. A changed catalog rolls
// out, and a command that runs meanwhile has its time to end.
func TestChartUpgrade(t *testing.T) {
	const drain = 20 * time.Second
	v := defaults().with(int(drain.Seconds()), "drainSeconds")
	rel := install(t, v)
	r := rel.connect(t)
	id := r.sleeping(t)
	before := rel.onlyPod(t)

	v = v.with("patches", "templates", "layers", "pool", "kind").
		with("apiVersion: v1\nkind: Pod\nmetadata: {annotations: {layer: laid}}\n", "templates", "layers", "pool", "data", "pod.yaml")
	rel.helm(t, v, "upgrade", rel.release, chartFolder)
	r.startedWith(t, "with the layer", func(p *corev1.Pod) bool { return p.Annotations["layer"] == "laid" })
	if rel.onlyPod(t) != before {
		t.Error("a changed template replaced the runner")
	}

	r.await(t, id, "it runs", running)
	short := r.execute(t, script(id, "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 1; done"))
	long := r.execute(t, script(id, "sleep 1000"))
	short.id(t)
	long.id(t)
	v = v.with([]any{values{"name": "new", "resources": values{"requestsCpu": "1m"}}}, "catalog", "flavors")
	began := time.Now()
	rel.helm(t, v, "upgrade", rel.release, chartFolder)
	if rel.onlyPod(t) == before {
		t.Error("a changed catalog did not replace the runner")
	}
	// The cluster's network learns of the successor a moment later.
	eventually(t, 10*time.Second, "a new connection finds the successor", func() error {
		req := sleeper()
		req.Flavor = "new"
		_, err := rel.connect(t).StartWorkload(t.Context(), req)
		return err
	})
	if exit := short.end(t); exit.GetExitCode() != 0 || exit.GetReason() != completed || !strings.HasSuffix(short.stdout.String(), "10\n") {
		t.Errorf("the short command ended with %v", exit)
	}
	select {
	case <-long.ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the long command does not end")
	}
	if lasted := long.endedAt.Sub(began); lasted < drain || long.exit.GetReason() != runnerError {
		t.Errorf("the long command ended after %s with %v, %v, %v", lasted, long.exit, long.failure, long.err)
	} else {
		t.Logf("the long command ended after %s", lasted.Round(time.Millisecond))
	}
}

// onlyPod is the UID of the only Pod of the runner that is not on its way out.
func (r *installation) onlyPod(t testing.TB) types.UID {
	t.Helper()
	pods := r.pods(t)
	if len(pods) != 1 {
		t.Fatalf("there are %d Pods", len(pods))
	}
	return pods[0].UID
}

// TestChartUpgradeFromPrevious upgrades from the chart of the last release to this one.
func TestChartUpgradeFromPrevious(t *testing.T) {
	tag, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--abbrev=0", "--match", "v*").Output()
	if err != nil {
		t.Skip("there is no release yet to upgrade from")
	}
	folder := t.TempDir()
	archive := filepath.Join(folder, "chart.tar")
	from := strings.TrimSpace(string(tag))
	for _, args := range [][]string{
		{"git", "-C", "..", "archive", "-o", archive, from, "charts/k8s-runner"},
		{"tar", "-xf", archive, "-C", folder},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	rel := installFrom(t, filepath.Join(folder, "charts", "k8s-runner"), defaults())
	r := rel.connect(t)
	id := r.sleeping(t)
	r.await(t, id, "it runs", running)
	rel.helm(t, defaults(), "upgrade", rel.release, chartFolder)
	r = rel.connect(t)
	if exit := r.run(t, script(id, "exit 7")).exit; exit.GetExitCode() != 7 {
		t.Errorf("a command in a workload from before the upgrade ended with %v", exit)
	}
	if _, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: id}); err != nil {
		t.Error(err)
	}
}
