//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// zoned is a catalog of a flavor that has a place.
const zoned = "flavors: [{name: zoned, nodeSelector: {zone: a}, tolerations: [{key: zone, operator: Exists}]}]\n"

// family is a request of containers of every role, which share a volume.
func family() *runnerv1.StartWorkloadRequest {
	req := sleeper()
	req.Flavor = "zoned"
	req.Volumes = []*runnerv1.VolumeSpec{{Name: "work", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL}}
	req.Main.Env = []*runnerv1.EnvVar{{Name: "MINE", Value: "request"}, {Name: "BOTH", Value: "request"}}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "work", MountPath: "/work"}}
	req.Sidecars = []*runnerv1.ContainerSpec{{Name: "helper", Image: "busybox"}}
	req.InitContainers = []*runnerv1.ContainerSpec{{Name: "prepare", Image: "busybox"}}
	return req
}

// TestCustomiseMerge lays patches, files and values one after another and wants
// what they make of one request, while the same runner runs.
func TestCustomiseMerge(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns, "--catalog-path", tempFile(t, zoned)), newOperator(t, ns)
	cordon(t, ns.name)
	for name, c := range map[string]struct {
		layers []layer
		check  func(t *testing.T, pod *corev1.Pod)
	}{
		"a sidecar of the request and one of a patch": {[]layer{aPatch("sidecar", `  containers:
  - name: {{ (first .Containers).Name }}
    securityContext: {runAsUser: 1234, allowPrivilegeEscalation: false}
    env:
    - {name: THEIRS, value: patch}
    - {name: BOTH, value: patch}
  - {name: shipper, image: shipper}
`)}, checkSidecars},
		"directives": {[]layer{aPatch("directives", `  nodeSelector: null
  securityContext: {$patch: replace, fsGroup: 7}
  tolerations:
  - $patch: replace
  - {key: only, operator: Exists}
  containers:
  - name: {{ (first .Containers).Name }}
    env:
    - {name: MINE, $patch: delete}
    - {name: BOTH, $patch: replace, value: patch}
  - {name: helper, $patch: delete}
  initContainers: [{name: prepare, $patch: delete}]
`)}, checkDirectives},
		"tolerations": {[]layer{aPatch("tolerations", "  tolerations: [{key: dedicated, operator: Exists}]\n")}, func(t *testing.T, pod *corev1.Pod) {
			if got := pod.Spec.Tolerations; len(got) < 2 || got[0].Key != "zone" || got[1].Key != "dedicated" {
				t.Errorf("the tolerations are %v", got)
			}
		}},
		"values of two": {[]layer{
			{workload.TemplateValues, "a-values", "v.yaml", "place: {pool: a, shelf: a}\n"},
			{workload.TemplateValues, "b-values", "v.yaml", "place: {pool: b}\n"},
			aPatch("c-place", "  nodeSelector: {{ .Values.place }}\n"),
		}, func(t *testing.T, pod *corev1.Pod) {
			if diff := cmp.Diff(map[string]string{"zone": "a", "pool": "b", "shelf": "a"}, pod.Spec.NodeSelector); diff != "" {
				t.Errorf("the node selector (-want +got):\n%s", diff)
			}
		}},
		"the later of two patches, which share a part": {[]layer{
			{workload.TemplatePatches, "a-part", "_part.tpl", "{{ define \"pool\" }}pool-{{ . }}{{ end }}"},
			aPatch("b", "  nodeSelector: {pool: {{ include \"pool\" 1 }}, zone: b}\n"),
			aPatch("c", "  nodeSelector: {pool: {{ include \"pool\" 2 }}}\n"),
		}, func(t *testing.T, pod *corev1.Pod) {
			if diff := cmp.Diff(map[string]string{"zone": "b", "pool": "pool-2"}, pod.Spec.NodeSelector); diff != "" {
				t.Errorf("the node selector (-want +got):\n%s", diff)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			defer o.layAll(t, c.layers...)()
			c.check(t, r.podOf(t, family()))
		})
	}
}

func aPatch(name, spec string) layer {
	return layer{workload.TemplatePatches, name, "pod.yaml", podPatch(spec)}
}

// TestCustomisePlaceAlone: a patch that has nothing but a node selector changes
// nothing else of the Pod.
func TestCustomisePlaceAlone(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns, "--catalog-path", tempFile(t, zoned)), newOperator(t, ns)
	cordon(t, ns.name)
	req := family()
	req.InlineFiles = map[string][]byte{"/etc/f": []byte("x")}
	req.Main.InlineFileMounts = []*runnerv1.InlineFileMount{{Path: "/etc/f"}}
	req.ImagePullCredentials = []*runnerv1.ImagePullCredential{{Registry: "r.example.com", Username: "u", Password: "p"}}
	before := r.podOf(t, req)
	r.removeNow(t, req.GetWorkloadId())
	defer o.layAll(t, aPatch("place", "  nodeSelector: {pool: agents}\n"))()
	after := r.podOf(t, req)
	if diff := cmp.Diff(map[string]string{"zone": "a", "pool": "agents"}, after.Spec.NodeSelector); diff != "" {
		t.Errorf("the node selector (-want +got):\n%s", diff)
	}
	if digest(before) == digest(after) {
		t.Error("the digest of the templates is the same")
	}
	for _, pod := range []*corev1.Pod{before, after} {
		pod.Spec.NodeSelector = nil
		delete(pod.Annotations, workload.AnnotationTemplates)
		pod.UID, pod.ResourceVersion, pod.CreationTimestamp, pod.ManagedFields, pod.Status = "", "", metav1.Time{}, nil, corev1.PodStatus{}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the rest of the Pod (-before +after):\n%s", diff)
	}
}

// removeNow removes workload id, of which no process runs, and waits until it is
// gone.
func (r *runner) removeNow(t *testing.T, id string) {
	t.Helper()
	if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the Pod is gone", func() error {
		if names := r.podNames(t); slices.Contains(names, workload.PodName(id)) {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})
}

// TestCustomiseObjects: files replace and add, in the order of the ConfigMaps;
// patches come after all files, for the object of their kind and name.
func TestCustomiseObjects(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns, "--network-policy-enabled", "true"), newOperator(t, ns)
	cordon(t, ns.name)
	policy := func(kind, name, file, note string) layer {
		return layer{kind, name, file, `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: {{ .Name }}` + note + `}
spec:
  podSelector: {matchLabels: {agyn.io/workload-id: {{ .ID }}}}
  policyTypes: [Ingress]
`}
	}
	defer o.layAll(t,
		policy(workload.TemplatePatches, "a-patch", "p.yaml", ", annotations: {by: patch}"),
		policy(workload.TemplatePatches, "a-patch-of-more", "p.yaml", "-more, annotations: {more: patch}"),
		policy(workload.TemplatePatches, "a-patch-of-none", "p.yaml", "-none, annotations: {none: patch}"),
		policy(workload.TemplateFiles, "b-files", "network-policy.yaml", ", annotations: {by: b, file: b}"),
		policy(workload.TemplateFiles, "c-files", "network-policy.yaml", ", annotations: {by: c, file: c}"),
		policy(workload.TemplateFiles, "d-files", "more.yaml", "-more"),
	)()
	pod := r.podOf(t, sleeper())
	for name, want := range map[string]map[string]string{pod.Name: {"by": "patch", "file": "c"}, pod.Name + "-more": {"more": "patch"}} {
		got, err := suite.admin.NetworkingV1().NetworkPolicies(ns.name).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Annotations); diff != "" {
			t.Errorf("the annotations of %s (-want +got):\n%s", name, diff)
		}
		if owners := got.OwnerReferences; len(owners) != 1 || owners[0].UID != pod.UID {
			t.Errorf("the owners of %s are %v", name, owners)
		}
		if len(got.Spec.Egress) > 0 || len(got.Spec.PolicyTypes) != 1 {
			t.Errorf("of the file that was replaced there is still %v", got.Spec)
		}
	}
}

// TestCustomiseTaken: a request that has what a patch adds, under the same name,
// is refused, naming both, and leaves nothing.
func TestCustomiseTaken(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns), newOperator(t, ns)
	cordon(t, ns.name)
	defer o.layAll(t, aPatch("shipper", "  containers:\n  - {name: shipper, image: shipper}\n"))()
	req := sleeper()
	req.Sidecars = []*runnerv1.ContainerSpec{{Name: "shipper", Image: "mine"}}
	_, err := r.StartWorkload(t.Context(), req)
	wantError(t, err, codes.InvalidArgument, "DUPLICATE_CONTAINER_NAME")
	violations := detail[*errdetails.BadRequest](status.Convert(err)).GetFieldViolations()
	if len(violations) != 1 || violations[0].GetField() != "sidecars[0].name" || !strings.Contains(violations[0].GetDescription(), "shipper/pod.yaml:5") {
		t.Errorf("the violations are %v", violations)
	}
	if names := r.podNames(t); len(names) > 0 {
		t.Errorf("there are %v", names)
	}
}

func containerNames(list []corev1.Container) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	return names
}

func checkSidecars(t *testing.T, pod *corev1.Pod) {
	if names := containerNames(pod.Spec.Containers); !slices.Equal(names, []string{"main", "helper", "shipper"}) {
		t.Fatalf("the containers are %v", names)
	}
	main := pod.Spec.Containers[0]
	if main.Image != "busybox" || len(main.VolumeMounts) != 1 || main.SecurityContext == nil || *main.SecurityContext.RunAsUser != 1234 {
		t.Errorf("main is %v", main)
	}
	want := []corev1.EnvVar{{Name: "MINE", Value: "request"}, {Name: "BOTH", Value: "patch"}, {Name: "THEIRS", Value: "patch"}}
	if diff := cmp.Diff(want, main.Env); diff != "" {
		t.Errorf("the variables of main (-want +got):\n%s", diff)
	}
	if helper := pod.Spec.Containers[1]; helper.SecurityContext != nil || len(helper.Env) > 0 {
		t.Errorf("the sidecar of the request is %v", helper)
	}
}

func checkDirectives(t *testing.T, pod *corev1.Pod) {
	spec := pod.Spec
	group := int64(7)
	if diff := cmp.Diff(&corev1.PodSecurityContext{FSGroup: &group}, spec.SecurityContext); diff != "" {
		t.Errorf("the security context that was replaced (-want +got):\n%s", diff)
	}
	if len(spec.NodeSelector) > 0 || spec.Tolerations[0].Key != "only" {
		t.Errorf("the node selector is %v, the tolerations are %v", spec.NodeSelector, spec.Tolerations)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "BOTH", Value: "patch"}}, spec.Containers[0].Env); diff != "" {
		t.Errorf("the variables of main (-want +got):\n%s", diff)
	}
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 {
		t.Errorf("there are %v and %v", containerNames(spec.Containers), containerNames(spec.InitContainers))
	}
}
