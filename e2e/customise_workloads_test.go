//go:build e2e

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// TestCustomiseApart: one runner tells workloads apart, by flavor, by property and
// by label, and each start gets its own.
func TestCustomiseApart(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns, "--catalog-path", tempFile(t, `flavors:
- name: gpu
  resources: {requestsCpu: "1", limitsMemory: 1Gi}
  devices: {nvidia.com/gpu: "1"}
  nodeSelector: {pool: gpu}
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
`))
	o, classes := newOperator(t, ns), newClasses(t)
	cordon(t, ns.name)
	classes.runtime(t, "gvisor")
	for _, name := range []string{"workloads-high", "workloads-medium", "workloads-low"} {
		classes.priority(t, name)
	}
	var edits []edit
	for _, name := range []string{"recipe-gpu", "recipe-gvisor", "recipe-tenant-priority"} {
		for _, m := range configMaps(t, name) {
			edits = append(edits, o.apply(t, m))
		}
	}
	o.loaded(t, edits...)

	type looks struct{ gpu, gvisor, priority string }
	for name, c := range map[string]struct {
		change func(*runnerv1.StartWorkloadRequest)
		want   looks
	}{
		"nothing": {func(*runnerv1.StartWorkloadRequest) {}, looks{"0", "gvisor", "workloads-low"}},
		"a flavor": {func(req *runnerv1.StartWorkloadRequest) {
			req.Flavor = "gpu"
		}, looks{"1", "gvisor", "workloads-low"}},
		"a property": {func(req *runnerv1.StartWorkloadRequest) {
			req.AdditionalProperties = map[string]string{"trusted": "true"}
		}, looks{"0", "", "workloads-low"}},
		"a label": {func(req *runnerv1.StartWorkloadRequest) {
			req.Labels = map[string]string{"tenant": "acme"}
		}, looks{"0", "gvisor", "workloads-high"}},
		"all of it": {func(req *runnerv1.StartWorkloadRequest) {
			req.Flavor = "gpu"
			req.AdditionalProperties = map[string]string{"trusted": "true", "label.tenant": "initech"}
		}, looks{"1", "", "workloads-medium"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := sleeper()
			c.change(req)
			pod := r.podOf(t, req)
			gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
			got := looks{gpus.String(), "", pod.Spec.PriorityClassName}
			if class := pod.Spec.RuntimeClassName; class != nil {
				got.gvisor = *class
			}
			if got != c.want {
				t.Errorf("it is %+v, not %+v", got, c.want)
			}
			if onPool, ofPatch := pod.Spec.NodeSelector["pool"] == "gpu", hasVolume(pod, "shared-memory"); onPool != (got.gpu == "1") || ofPatch != onPool {
				t.Errorf("the node selector is %v, the volumes are %v", pod.Spec.NodeSelector, pod.Spec.Volumes)
			}
		})
	}
}

func hasVolume(pod *corev1.Pod, name string) bool {
	for _, v := range pod.Spec.Volumes {
		if v.Name == name {
			return true
		}
	}
	return false
}

// TestCustomiseTriedForEach: an edit that is wrong for one flavor, one storage
// class or one capability alone is rejected, though no request names it.
func TestCustomiseTriedForEach(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns, "--catalog-path", tempFile(t, `flavors: [{name: rare, resources: {requestsCpu: "1"}}]
storageClasses: [{name: slow, storageClassName: tape}]
capabilities: [docker]
`), "--capabilities-implementations", `{"docker":"rootless"}`)
	o := newOperator(t, ns)
	cordon(t, ns.name)
	before := digest(r.podOf(t, sleeper()))
	for name, c := range map[string]struct{ patch, where, words string }{
		"flavor":        {`{{ if eq .Flavor.Name "rare" }}{{ .Flavor.Nope }}{{ end }}`, "tried/p.yaml:1:", "(with flavor rare)"},
		"storage class": {"{{ range .Claims }}{{ if eq .StorageClass \"tape\" }}\n{{ .Nope }}{{ end }}{{ end }}", "tried/p.yaml:2:", "(with "},
		"capability":    {"{{ if .Docker }}\n\n{{ .Docker.Nope }}{{ end }}", "tried/p.yaml:3:", "(with docker"},
		"the cluster":   {"apiVersion: v1\nkind: Pod\nspec:\n  priorityClassName: not-there\n", "tried/p.yaml:", "the cluster would refuse the Pod: "},
	} {
		t.Run(name, func(t *testing.T) {
			e := o.layOne(t, layer{workload.TemplatePatches, "tried", "p.yaml", c.patch})
			if reason := o.rejected(t, e); !strings.HasPrefix(reason, c.where) || !strings.Contains(reason, c.words) {
				t.Errorf("the reason is %s", reason)
			}
			if after := digest(r.podOf(t, sleeper())); after != before {
				t.Error("another set made a Pod")
			}
		})
	}
}
