//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// get asks the runner's listener of metrics and probes, which its log names.
func (r *runner) get(t testing.TB, path string) (code int, body string) {
	t.Helper()
	at := regexp.MustCompile(`msg="serving metrics" address="([^"]+)"`).FindStringSubmatch(r.log.String())
	if at == nil {
		t.Fatalf("the log does not say where the metrics are\n%s", r.log)
	}
	address := at[1]
	if r.installed != nil {
		address = r.installed.metrics
	}
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// metricsLimit bounds the wait for a count, which comes after what is counted.
const metricsLimit = 8 * time.Second

// wantMetrics wants lines of /metrics.
func (r *runner) wantMetrics(t testing.TB, lines ...string) {
	t.Helper()
	eventually(t, metricsLimit, "the metrics say so", func() error {
		code, text := r.get(t, "/metrics")
		for _, line := range lines {
			if !strings.Contains("\n"+text, "\n"+line+"\n") {
				return fmt.Errorf("of code %d the metrics have no %s", code, line)
			}
		}
		return nil
	})
}

// templates runs k8s-runner templates status.
func (r *runner) templates(t testing.TB, flags ...string) string {
	t.Helper()
	out, err := exec.Command(suite.binary, append([]string{"templates", "status", "--address", r.address}, flags...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// awaitTemplates waits for a status that is as check wants it.
func (r *runner) awaitTemplates(t testing.TB, what string, check func(*k8srunnerv1.TemplatesStatus) bool) *k8srunnerv1.TemplatesStatus {
	t.Helper()
	status := &k8srunnerv1.TemplatesStatus{}
	eventually(t, layersLimit, what, func() error {
		text := r.templates(t, "-o", "json")
		if err := protojson.Unmarshal([]byte(text), status); err != nil {
			return err
		}
		if !check(status) {
			return fmt.Errorf("it is %s", text)
		}
		return nil
	})
	return status
}

// made starts a workload and returns the digest of the set that made it.
func (r *runner) made(t testing.TB) string {
	t.Helper()
	req := sleeper()
	req.Main.Env = []*runnerv1.EnvVar{{Name: "TOKEN", Value: "s3cr3t"}}
	r.start(t, req)
	return r.pod(t, req.GetWorkloadId()).Annotations[workload.AnnotationTemplates]
}

// version is the resource version of a ConfigMap.
func (ns *namespace) version(t testing.TB, name string) string {
	t.Helper()
	m, err := suite.admin.CoreV1().ConfigMaps(ns.name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m.ResourceVersion
}

// TestStatus: an operator sees each edit become of the templates, in the status,
// the metrics and the probes.
func TestStatus(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	cordon(t, ns.name)
	shipped := r.awaitTemplates(t, "as shipped", func(s *k8srunnerv1.TemplatesStatus) bool { return s.GetServed() })
	if digest := r.made(t); digest != shipped.GetDigest() || len(shipped.GetLayers()) != 0 || shipped.GetRejection() != nil {
		t.Errorf("the set %s made a Pod, and the status is %v", digest, shipped)
	}

	ns.lay(t, "a-values", workload.TemplateValues, map[string]string{"values.yaml": "pool: gpu\n"})
	r.awaitTemplates(t, "with values", func(s *k8srunnerv1.TemplatesStatus) bool { return len(s.GetLayers()) == 1 })
	ns.lay(t, "b-patch", workload.TemplatePatches, map[string]string{"pool.yaml": nodePool})
	good := r.awaitTemplates(t, "patched", func(s *k8srunnerv1.TemplatesStatus) bool { return len(s.GetLayers()) == 2 })
	want := []*k8srunnerv1.TemplateLayer{
		{Name: "a-values", Kind: "values", ResourceVersion: ns.version(t, "a-values")},
		{Name: "b-patch", Kind: "patches", ResourceVersion: ns.version(t, "b-patch")},
	}
	if diff := cmp.Diff(want, good.GetLayers(), protocmp.Transform(), protocmp.IgnoreFields(&k8srunnerv1.TemplateLayer{}, "digest")); diff != "" {
		t.Errorf("the layers (-want +got):\n%s", diff)
	}
	if digest := r.made(t); digest != good.GetDigest() || digest == shipped.GetDigest() {
		t.Errorf("the set %s made a Pod, and the status has %s", digest, good.GetDigest())
	}
	r.wantMetrics(t, `k8s_runner_templates_edits_total{result="loaded"} 3`, `k8s_runner_templates_edits_total{result="rejected"} 0`, `k8s_runner_templates_rejected 0`)

	ns.lay(t, "b-patch", workload.TemplatePatches, map[string]string{"pool.yaml": "apiVersion: v1\nkind: Pod\nspec: {hostNetwork: true}\n"})
	const finding = "b-patch/pool.yaml:3: spec.hostNetwork is refused"
	bad := r.awaitTemplates(t, "rejected", func(s *k8srunnerv1.TemplatesStatus) bool { return s.GetRejection() != nil })
	about := bad.GetRejection()
	if !strings.HasPrefix(about.GetFindings()[0], finding) || !slices.Equal(about.GetConfigMaps(), []string{"b-patch"}) || time.Since(about.GetAt().AsTime()) > time.Minute {
		t.Errorf("the rejection is %v", about)
	}
	bad.Rejection = nil
	if diff := cmp.Diff(good, bad, protocmp.Transform()); diff != "" {
		t.Errorf("what is served changes (-before +after):\n%s", diff)
	}
	if digest := r.made(t); digest != good.GetDigest() {
		t.Errorf("the set %s made a Pod", digest)
	}
	r.wantMetrics(t, `k8s_runner_templates_edits_total{result="loaded"} 3`, `k8s_runner_templates_edits_total{result="rejected"} 1`, `k8s_runner_templates_rejected 1`)
	if text := r.templates(t); !strings.Contains(text, "\n  "+finding) || !strings.Contains(text, "\nb-patch ") || strings.Contains(text, "s3cr3t") {
		t.Errorf("people read\n%s", text)
	}
	if code, body := r.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("with the set of before it is not ready: %d %s", code, body)
	}

	ns.lay(t, "b-patch", workload.TemplatePatches, map[string]string{"pool.yaml": strings.Replace(nodePool, "pool:", "other-pool:", 1)})
	mended := r.awaitTemplates(t, "mended", func(s *k8srunnerv1.TemplatesStatus) bool { return s.GetRejection() == nil })
	before, after := good.GetLayers(), mended.GetLayers()
	if mended.GetDigest() == good.GetDigest() || before[0].GetDigest() != after[0].GetDigest() || before[1].GetDigest() == after[1].GetDigest() {
		t.Errorf("it was %v and is %v", good, mended)
	}
	r.wantMetrics(t, `k8s_runner_templates_edits_total{result="loaded"} 4`, `k8s_runner_templates_rejected 0`,
		`grpc_server_handled_total{grpc_code="OK",grpc_method="StartWorkload",grpc_service="agynio.api.runner.v1.RunnerService",grpc_type="unary"} 3`)
	if _, text := r.get(t, "/metrics"); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "go_goroutines ") {
		t.Error("the metrics hold a secret, or lack those of Go")
	}
	r.stop(t)
	if code, body := r.get(t, "/livez"); code != 0 {
		t.Errorf("without the runner something answers %d %s", code, body)
	}
}

// TestReadyz: without a good set the runner lives, and is not ready.
func TestReadyz(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	ns.lay(t, "broken", workload.TemplateFiles, map[string]string{"pod.yaml": "{{ .Nope }}"})
	r := startRunner(t, ns)
	code, body := r.get(t, "/readyz")
	if code != http.StatusServiceUnavailable || !strings.HasPrefix(body, "templates: none were good since the start: broken/pod.yaml:1: ") || strings.Count(body, "\n") != 1 {
		t.Errorf("it is %d %s", code, body)
	}
	if code, body := r.get(t, "/livez"); code != http.StatusOK {
		t.Errorf("it does not live: %d %s", code, body)
	}
	status := r.awaitTemplates(t, "rejected", func(s *k8srunnerv1.TemplatesStatus) bool { return s.GetRejection() != nil })
	if status.GetServed() || status.GetDigest() != "" || len(status.GetLayers()) != 0 {
		t.Errorf("the status is %v", status)
	}
	r.wantMetrics(t, "k8s_runner_templates_loaded_timestamp_seconds 0", `k8s_runner_templates_edits_total{result="rejected"} 1`, "k8s_runner_templates_rejected 1")

	ns.lay(t, "broken", workload.TemplateValues, map[string]string{"values.yaml": "mended: true\n"})
	eventually(t, layersLimit, "it is ready", func() error {
		if code, body := r.get(t, "/readyz"); code != http.StatusOK {
			return fmt.Errorf("it is %d %s", code, body)
		}
		return nil
	})
	status = r.awaitTemplates(t, "mended", func(s *k8srunnerv1.TemplatesStatus) bool { return s.GetServed() })
	if digest := r.made(t); digest != status.GetDigest() {
		t.Errorf("the set %s made a Pod, and the status has %s", digest, status.GetDigest())
	}
	if _, text := r.get(t, "/metrics"); strings.Contains(text, "\nk8s_runner_templates_loaded_timestamp_seconds 0\n") {
		t.Error("it was loaded at no time")
	}
}

// TestNoMetrics: an empty address serves none.
func TestNoMetrics(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--metrics-address", "")
	if strings.Contains(r.log.String(), "serving metrics") {
		t.Errorf("the log has\n%s", r.log)
	}
}
