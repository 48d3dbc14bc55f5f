//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// ofMain is a patch of the main container of which the fields are given, from
// line 6 on.
func ofMain(name, fields string) layer {
	return aPatch(name, "  containers:\n  - name: {{ (first .Containers).Name }}\n"+fields)
}

// ofPod is a patch of the Pod's metadata, from line 4 on.
func ofPod(name, fields string) layer {
	return layer{workload.TemplatePatches, name, "pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n" + fields}
}

func aFile(name, text string) layer { return layer{workload.TemplateFiles, name, "file.yaml", text} }

func aHostPath() layer {
	return aPatch("a", "  volumes:\n  - name: models\n    hostPath: {path: /srv/models}\n")
}

// TestCustomiseSeal: what no layer can do is rejected with its file and line.
func TestCustomiseSeal(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns), newOperator(t, ns)
	cordon(t, ns.name)
	before := digest(r.podOf(t, sleeper()))
	for name, c := range map[string]struct {
		layer layer
		where string
	}{
		"an owner":                   {ofPod("a", "  ownerReferences: [{apiVersion: v1, kind: Node, name: n, uid: u}]\n"), "a/pod.yaml:4: metadata.ownerReferences"},
		"a finalizer":                {ofPod("a", "  annotations: {a: b}\n  finalizers: [example.com/stay]\n"), "a/pod.yaml:5: metadata.finalizers"},
		"a token by itself":          {aPatch("a", "  automountServiceAccountToken: true\n"), "a/pod.yaml:4: spec.automountServiceAccountToken"},
		"a token in a volume":        {aPatch("a", "  volumes:\n  - name: t\n    projected:\n      sources:\n      - serviceAccountToken: {path: t}\n"), "a/pod.yaml:8: spec.volumes[0].projected.sources[0].serviceAccountToken"},
		"a token in a Secret":        {aFile("a", "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Name }}-t}\ntype: kubernetes.io/service-account-token\n"), "a/file.yaml:4: type is refused"},
		"the host's network":         {aPatch("a", "  hostNetwork: true\n"), "a/pod.yaml:4: spec.hostNetwork"},
		"the host's processes":       {aPatch("a", "  hostPID: true\n"), "a/pod.yaml:4: spec.hostPID"},
		"the host's IPC":             {aPatch("a", "  hostIPC: true\n"), "a/pod.yaml:4: spec.hostIPC"},
		"a host path":                {aHostPath(), "a/pod.yaml:6: spec.volumes[0].hostPath"},
		"a host port":                {ofMain("a", "    ports:\n    - {containerPort: 80, hostPort: 80}\n"), "a/pod.yaml:7: spec.containers[0].ports[0].hostPort"},
		"privileged":                 {ofMain("a", "    securityContext: {privileged: true}\n"), "a/pod.yaml:6: spec.containers[0].securityContext.privileged"},
		"a capability":               {ofMain("a", "    securityContext:\n      capabilities: {add: [SYS_ADMIN]}\n"), "a/pod.yaml:7: spec.containers[0].securityContext.capabilities.add[0]"},
		"no seccomp":                 {aPatch("a", "  securityContext:\n    seccompProfile: {type: Unconfined}\n"), "a/pod.yaml:5: spec.securityContext.seccompProfile.type"},
		"no AppArmor":                {ofMain("a", "    securityContext: {appArmorProfile: {type: Unconfined}}\n"), "a/pod.yaml:6: spec.containers[0].securityContext.appArmorProfile.type"},
		"an unmasked /proc":          {ofMain("a", "    securityContext: {procMount: Unmasked}\n"), "a/pod.yaml:6: spec.containers[0].securityContext.procMount"},
		"a sysctl":                   {aPatch("a", "  securityContext:\n    sysctls: [{name: net.ipv4.tcp_rmem, value: \"1\"}]\n"), "a/pod.yaml:5: spec.securityContext.sysctls"},
		"a container before main":    {aFile("a", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: mine, image: a}]}\n"), "a/file.yaml:"},
		"a kind":                     {aFile("a", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: {{ .Name }}}\n"), "a/file.yaml:"},
		"a kind of a patch":          {layer{workload.TemplatePatches, "a", "p.yaml", "apiVersion: v1\nkind: Service\nspec: {externalName: x}\n"}, "a/p.yaml:"},
		"a name":                     {aFile("a", "apiVersion: v1\nkind: Secret\nmetadata: {name: another}\n"), "a/file.yaml:3: metadata.name"},
		"a claim of no request":      {aFile("a", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: {{ .Name }}}\n"), "a/file.yaml:3: metadata.name"},
		"an owner of what is beside": {aFile("a", "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Name }}-a, ownerReferences: []}\n"), "a/file.yaml:3: metadata.ownerReferences"},
	} {
		t.Run(name, func(t *testing.T) {
			if reason := o.rejected(t, o.layOne(t, c.layer)); !strings.HasPrefix(reason, c.where) {
				t.Errorf("the reason is %s", reason)
			}
			o.remove(t, c.layer.name)
		})
	}
	r.podOf(t, sleeper())
	r.wantDigest(t, before)
}

// TestCustomiseIdentity: a layer that names the Pod, its namespace or its identity
// loads, and they are the runner's all the same.
func TestCustomiseIdentity(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns), newOperator(t, ns)
	cordon(t, ns.name)
	shipped, err := templates.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Replace(shipped["pod.yaml"], "name: {{ .Name }}", "name: another", 1)
	if named == shipped["pod.yaml"] {
		t.Fatal("the shipped Pod is named in another way")
	}
	const identity = "{agyn.io/workload-id: another, app.kubernetes.io/managed-by: me, agyn.dev/managed-by: me, mine: mine}"
	req := sleeper()
	want := r.podOf(t, req)
	r.removeNow(t, req.GetWorkloadId())
	defer o.layAll(t,
		layer{workload.TemplateFiles, "files", "pod.yaml", named},
		ofPod("patch", "  namespace: kube-system\n  labels: "+identity+"\n  annotations: {agyn.io/templates-digest: mine, agyn.io/request-digest: mine}\n"),
	)()
	got := r.podOf(t, req) // which reads it under its name and in its namespace
	want.Labels["mine"] = "mine"
	if diff := cmp.Diff(want.Labels, got.Labels); diff != "" {
		t.Errorf("the labels (-want +got):\n%s", diff)
	}
	if got.Annotations[workload.AnnotationDigest] != want.Annotations[workload.AnnotationDigest] || digest(got) == "mine" || digest(got) == digest(want) {
		t.Errorf("the digests are of %v", got.Annotations)
	}
	if names := r.podNames(t); len(names) != 1 {
		t.Errorf("there are %v", names)
	}
}

// TestCustomiseAllowed: the privilege that the settings allow is there, and no
// other.
func TestCustomiseAllowed(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns, "--security-allowed-privileges", "host-path"), newOperator(t, ns)
	cordon(t, ns.name)
	defer o.layAll(t, aHostPath())()
	pod := r.podOf(t, sleeper())
	if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].HostPath == nil || pod.Spec.Volumes[0].HostPath.Path != "/srv/models" {
		t.Errorf("the volumes are %v", pod.Spec.Volumes)
	}
	reason := o.rejected(t, o.layOne(t, aPatch("b", "  hostNetwork: true\n")))
	if !strings.HasPrefix(reason, "b/pod.yaml:4: spec.hostNetwork is refused: the setting security.allowed_privileges has no host-namespaces") {
		t.Errorf("the reason is %s", reason)
	}
	r.wantDigest(t, digest(pod))
}
