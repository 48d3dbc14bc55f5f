//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// lay makes or changes a ConfigMap of an operator.
func (ns *namespace) lay(t testing.TB, name, kind string, data map[string]string) {
	t.Helper()
	maps := suite.admin.CoreV1().ConfigMaps(ns.name)
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{workload.LabelTemplates: kind}},
		Data:       data,
	}
	if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := maps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// layersLimit is how long an edit may take until it counts or is refused: it is tried
// for up to twenty seconds.
const layersLimit = 30 * time.Second

// awaitEvent waits for an Event of a ConfigMap.
func (ns *namespace) awaitEvent(t testing.TB, name, reason, text string) {
	t.Helper()
	eventually(t, layersLimit, reason+" of "+name, func() error {
		list, err := suite.admin.CoreV1().Events(ns.name).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})
}

// startedWith starts a workload until its Pod is as check wants it, and says how
// long that took.
func (r *runner) startedWith(t testing.TB, what string, check func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	begin := time.Now()
	eventually(t, layersLimit, what, func() error {
		req := sleeper()
		r.start(t, req)
		if pod = r.pod(t, req.GetWorkloadId()); !check(pod) {
			return fmt.Errorf("the Pod is %v", pod.Spec)
		}
		return nil
	})
	t.Logf("%s after %s", what, time.Since(begin).Round(time.Millisecond))
	return pod
}

const nodePool = `apiVersion: v1
kind: Pod
spec:
  nodeSelector: {pool: {{ .Values.pool }}}
`

// TestOverrides edits layers of every kind: the next start has them; a broken edit
// changes nothing and is told; without layers all is as shipped.
func TestOverrides(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	cordon(t, ns.name)
	shipped := r.startedWith(t, "as shipped", func(*corev1.Pod) bool { return true })

	ns.lay(t, "b-patch", workload.TemplatePatches, map[string]string{"pool.yaml": nodePool})
	// Its values are not there yet.
	ns.awaitEvent(t, "b-patch", "TemplatesRejected", "b-patch/pool.yaml:4: ")
	ns.lay(t, "a-values", workload.TemplateValues, map[string]string{"values.yaml": "pool: gpu\n"})
	patched := r.startedWith(t, "patched", func(p *corev1.Pod) bool { return p.Spec.NodeSelector["pool"] == "gpu" })
	if len(patched.Spec.Containers) != 1 || patched.Annotations[workload.AnnotationTemplates] == shipped.Annotations[workload.AnnotationTemplates] {
		t.Errorf("the Pod is %v, made by %s", patched.Spec.Containers, patched.Annotations[workload.AnnotationTemplates])
	}
	ns.awaitEvent(t, "b-patch", "TemplatesLoaded", "")

	ns.lay(t, "b-patch", workload.TemplatePatches, map[string]string{"pool.yaml": "apiVersion: v1\nkind: Pod\nspec: {hostNetwork: true}\n"})
	ns.awaitEvent(t, "b-patch", "TemplatesRejected", "b-patch/pool.yaml:3: spec.hostNetwork is refused")
	still := r.startedWith(t, "still as before", func(p *corev1.Pod) bool { return p.Spec.NodeSelector["pool"] == "gpu" })
	if still.Annotations[workload.AnnotationTemplates] != patched.Annotations[workload.AnnotationTemplates] {
		t.Error("another set made it")
	}
	if log := r.log.String(); strings.Count(log, "templates rejected") != 2 {
		t.Errorf("the log has\n%s", log)
	}

	for _, name := range []string{"a-values", "b-patch"} {
		if err := suite.admin.CoreV1().ConfigMaps(ns.name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.startedWith(t, "as shipped again", func(p *corev1.Pod) bool {
		return p.Annotations[workload.AnnotationTemplates] == shipped.Annotations[workload.AnnotationTemplates]
	})
}

// TestOverridesBadAtStart: no workload is started without what may isolate it.
func TestOverridesBadAtStart(t *testing.T) {
	ns := newNamespace(t)
	ns.lay(t, "broken", workload.TemplateFiles, map[string]string{"pod.yaml": "{{ .Nope }}"})
	r := startRunner(t, ns)
	_, err := r.StartWorkload(t.Context(), sleeper())
	wantError(t, err, codes.FailedPrecondition, "TEMPLATES_REJECTED")
	if !strings.Contains(err.Error(), "broken/pod.yaml:1") {
		t.Errorf("the error is %v", err)
	}
	if _, err := r.ListWorkloads(t.Context(), &runnerv1.ListWorkloadsRequest{}); err != nil {
		t.Error(err)
	}
}

// TestOverridesWhileStarting edits a layer of two parts a hundred times while a
// thousand workloads start: each is made by one version alone.
func TestOverridesWhileStarting(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	cordon(t, ns.name)
	layer := func(version int) map[string]string {
		patch := func(kind, name string) string {
			return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {annotations: {version-of-%s: \"%d\"}}\n", kind, name, version)
		}
		return map[string]string{"a.yaml": patch("Pod", "a"), "b.yaml": patch("Pod", "b")}
	}
	ns.lay(t, "versions", workload.TemplatePatches, layer(0))
	r.startedWith(t, "the first version", func(p *corev1.Pod) bool { return p.Annotations["version-of-a"] == "0" })

	var group errgroup.Group
	group.Go(func() error {
		for i := 1; i <= 100; i++ {
			ns.lay(t, "versions", workload.TemplatePatches, layer(i))
		}
		return nil
	})
	for range 10 {
		group.Go(func() error {
			for range 100 {
				if _, err := r.StartWorkload(t.Context(), sleeper()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	pods, err := suite.admin.CoreV1().Pods(ns.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, digests := map[string]string{}, map[string]int{}
	for _, p := range pods.Items {
		version := p.Annotations["version-of-a"]
		if version != p.Annotations["version-of-b"] {
			t.Errorf("one Pod has versions %s and %s", version, p.Annotations["version-of-b"])
		}
		digest := p.Annotations[workload.AnnotationTemplates]
		if other, known := made[digest]; known && other != version {
			t.Errorf("the set %s made versions %s and %s", digest, other, version)
		}
		made[digest] = version
		digests[digest]++
	}
	if len(pods.Items) < 1000 {
		t.Errorf("there are %d Pods", len(pods.Items))
	}
	t.Logf("%d Pods were made by %d sets", len(pods.Items), len(digests))
	r.startedWith(t, "the last version", func(p *corev1.Pod) bool { return p.Annotations["version-of-a"] == "100" })
}
