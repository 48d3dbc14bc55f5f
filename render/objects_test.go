package render_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/render"
)

// withObjects is a request that needs an object of each kind.
const withObjects = `
workload_id: ` + id + `
main:
  image: busybox
  env: [{name: TOKEN, value: ` + secret + `}]
  mounts: [{volume: data, mount_path: /data}]
  inline_file_mounts: [{path: /etc/a}]
volumes: [{name: data, kind: VOLUME_KIND_NAMED, persistent_name: claim-1}, {name: more, kind: VOLUME_KIND_NAMED}]
inline_files: {/etc/a: czNjcjN0LXZhbHVl}
image_pull_credentials: [{registry: ghcr.io, username: me, password: ` + secret + `}, {registry: ghcr.io, username: you, password: ` + secret + `}]
labels: {team: core}
`

// objectsError renders withObjects with the template text beside a Pod, which
// must fail without a secret in the error.
func objectsError(t *testing.T, text string) string {
	t.Helper()
	set := compile(t, map[string]string{"pod.yaml": podWith(""), "x.yaml": text})
	_, err := set.Render(specOf(t, withObjects), noPlan, settings)
	if err == nil {
		t.Fatal("it renders")
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error holds a secret: %v", err)
	}
	return err.Error()
}

// TestSealOfOthers has the metadata of what goes with a Pod, whatever a
// template says.
func TestSealOfOthers(t *testing.T) {
	const pod = "workload-" + id
	owned := map[string]any{"app.kubernetes.io/managed-by": "k8s-runner", "agyn.dev/managed-by": "agents-orchestrator", "agyn.io/workload-id": id}
	outlives := map[string]any{"app.kubernetes.io/managed-by": "k8s-runner", "agyn.dev/managed-by": "agents-orchestrator"}
	for name, c := range map[string]struct {
		object string
		want   map[string]any
	}{
		"a Secret": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: " + pod + "}\n",
			map[string]any{"name": pod, "namespace": "workloads", "labels": owned},
		},
		"with a suffix, in another namespace, of another workload": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: " + pod + "-x, namespace: kube-system, labels: {agyn.io/workload-id: x, app.kubernetes.io/managed-by: , mine: a}, annotations: {b: c}}\n",
			map[string]any{"name": pod + "-x", "namespace": "workloads", "labels": with(owned, "mine", "a"), "annotations": map[string]any{"b": "c"}},
		},
		"a NetworkPolicy": {
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: " + pod + "}\nspec: {podSelector: {}}\n",
			map[string]any{"name": pod, "namespace": "workloads", "labels": owned},
		},
		"a claim has no workload id": {
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim-1, namespace: default, labels: {agyn.io/workload-id: " + id + ", agyn.dev/managed-by: me, volume_key: v}}\n",
			map[string]any{"name": "claim-1", "namespace": "workloads", "labels": with(outlives, "volume_key", "v")},
		},
		"a claim without labels": {
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: more, labels: }\n",
			map[string]any{"name": "more", "namespace": "workloads", "labels": outlives},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, map[string]string{"pod.yaml": podWith(""), "x.yaml": c.object})
			manifests, err := set.Render(specOf(t, withObjects), noPlan, settings)
			if err != nil {
				t.Fatal(err)
			}
			all := manifests.All()
			if len(all) != 2 || all[0] != manifests.Pod {
				t.Fatalf("there are %d objects", len(all))
			}
			if isClaim := all[1].GetKind() == "PersistentVolumeClaim"; isClaim != (len(manifests.Claims) == 1) || isClaim == (len(manifests.Owned) == 1) {
				t.Errorf("of claims there are %d, of what the Pod owns %d", len(manifests.Claims), len(manifests.Owned))
			}
			if diff := cmp.Diff(c.want, all[1].Object["metadata"]); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func with(m map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestSealOfOthersRefuses(t *testing.T) {
	const named = "metadata:\n  name: {{ .Name }}-x\n"
	secretOf := func(lines string) string { return "apiVersion: v1\nkind: Secret\n" + named + lines }
	for name, c := range map[string]struct{ object, where string }{
		"a foreign name":            {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: shared\n", "x.yaml:4: metadata.name "},
		"a name that starts alike":  {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Name }}x\n", "x.yaml:4: metadata.name "},
		"a dash too early":          {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: workload-x\n", "x.yaml:4: metadata.name "},
		"no name":                   {"apiVersion: v1\nkind: Secret\n", "x.yaml:1: metadata.name "},
		"a made name":               {"apiVersion: v1\nkind: Secret\nmetadata:\n  generateName: {{ .Name }}-\n", "x.yaml:4: metadata.generateName "},
		"a name that is none":       {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Name }}-a/b\n", "x.yaml:4: metadata.name "},
		"a policy of a name":        {"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: deny\n", "x.yaml:4: metadata.name "},
		"a claim of no volume":      {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: claim-2\n", "x.yaml:4: metadata.name "},
		"a claim called as the Pod": {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {{ .Name }}-x\n", "x.yaml:4: metadata.name "},
		"a claim by its volume":     {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n", "x.yaml:4: metadata.name "},
		"a token":                   {secretOf("type: kubernetes.io/service-account-token\n"), "x.yaml:5: type "},
		"a token by a value":        {secretOf("type: {{ print \"kubernetes.io/\" \"service-account-token\" }}\n"), "x.yaml:5: type "},
		"a bootstrap token":         {secretOf("type: bootstrap.kubernetes.io/token\n"), "x.yaml:5: type "},
		"an owner":                  {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Name }}-x\n  ownerReferences: []\n", "x.yaml:5: metadata.ownerReferences "},
		"a finalizer":               {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: claim-1\n  finalizers: [a/b]\n", "x.yaml:5: metadata.finalizers "},
		"a status":                  {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: claim-1\nstatus: {phase: Bound}\n", "x.yaml:5: status "},
		"an unknown field":          {secretOf("dataa: {}\n"), "x.yaml:5: dataa "},
		"data that is not base64":   {secretOf("data:\n  a: \"*\"\n"), "x.yaml:6: data.a "},
		"a value that is not":       {secretOf("data:\n  a: {{ (index (index .Containers 0).Env 0).Value }}\n"), "x.yaml:6: data.a "},
		"a size that is none":       {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: claim-1\nspec: {resources: {requests: {storage: lots}}}\n", "x.yaml:5: spec.resources.requests.storage "},
		"a ServiceAccount":          {"apiVersion: v1\nkind: ServiceAccount\n" + named, "x.yaml:2: kind "},
		"a ConfigMap":               {"apiVersion: v1\nkind: ConfigMap\n" + named, "x.yaml:2: kind "},
		"a policy of another group": {"apiVersion: extensions/v1beta1\nkind: NetworkPolicy\n" + named, "x.yaml:2: kind "},
	} {
		t.Run(name, func(t *testing.T) {
			if err := objectsError(t, c.object); !strings.HasPrefix(err, c.where) {
				t.Errorf("the error does not start with %q: %s", c.where, err)
			}
		})
	}
}

func TestObjectsAreMadeOnce(t *testing.T) {
	const object = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Name }}-x\n"
	err := objectsError(t, object+"---\n"+strings.Replace(object, "Secret\n", "Secret\ntype: other\n", 1))
	if !strings.HasPrefix(err, "x.yaml:6: a second Secret ") || !strings.Contains(err, "x.yaml:1 makes one") {
		t.Errorf("the error is %s", err)
	}
	// A name can hold a secret.
	const secretly = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Name }}-{{ (index (index .Containers 0).Env 0).Value }}\n"
	if err := objectsError(t, secretly+"---\n"+secretly); !strings.HasPrefix(err, "x.yaml:6: a second Secret ") {
		t.Errorf("the error is %s", err)
	}
	err = objectsError(t, strings.ReplaceAll("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: CLAIM\n", "CLAIM", "{{ (index .Claims 0).Name }}")+"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim-1}\n")
	if !strings.HasPrefix(err, "x.yaml:6: a second PersistentVolumeClaim ") {
		t.Errorf("the error is %s", err)
	}
	// The same name is free for another kind.
	set := compile(t, map[string]string{"pod.yaml": podWith(""), "x.yaml": object + "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: {{ .Name }}-x}\n"})
	if _, err := set.Render(specOf(t, withObjects), noPlan, settings); err != nil {
		t.Error(err)
	}
}

// TestObjectsAreInTheOrderOfTheirFiles, the Pod before what it owns and claims last.
func TestObjectsAreInTheOrderOfTheirFiles(t *testing.T) {
	manifests, err := shipped(t).Render(specOf(t, withObjects), noPlan, settings)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifests.All() {
		got = append(got, m.GetKind()+" "+strings.TrimPrefix(m.GetName(), "workload-"+id))
	}
	want := []string{"Pod ", "Secret -inline-files", "Secret -pull", "Secret -pull-2", "PersistentVolumeClaim claim-1", "PersistentVolumeClaim more"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// TestMuchInline renders the most that a Secret holds (C10), in one file and in
// a thousand.
func TestMuchInline(t *testing.T) {
	const most = 1 << 20
	for name, files := range map[string]int{"one file": 1, "a thousand": 1000} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(t, `{workload_id: `+id+`, main: {image: a}}`)
			spec.InlineFiles = map[string][]byte{}
			for i := range files {
				path := "/files/" + strings.Repeat("a", i%50) + string(rune('a'+i%26)) + strings.Repeat("b", i/50)
				spec.InlineFiles[path] = bytes.Repeat([]byte{0xff}, most/files)
				spec.Main.InlineFiles = append(spec.Main.InlineFiles, path)
			}
			manifests, err := shipped(t).Render(spec, noPlan, settings)
			if err != nil {
				t.Fatal(err)
			}
			total := 0
			for _, v := range manifests.Owned[0].Object["data"].(map[string]any) {
				content, err := base64.StdEncoding.DecodeString(v.(string))
				if err != nil {
					t.Fatal(err)
				}
				total += len(content)
			}
			if want := most / files * len(spec.InlineFiles); total != want {
				t.Errorf("the Secret holds %d bytes, the request %d", total, want)
			}
		})
	}
}

// TestClaimsOfAnInput: a template that inserts .Labels makes a claim without the
// workload id, which it outlives. The maps of a request are not changed.
func TestClaimsOfAnInput(t *testing.T) {
	spec := specOf(t, `{workload_id: `+id+`, main: {image: a}, labels: {team: core}, volumes: [{name: v, kind: 2, labels: {team: storage}}]}`)
	untouched := specOf(t, `{workload_id: `+id+`, main: {image: a}, labels: {team: core}, volumes: [{name: v, kind: 2, labels: {team: storage}}]}`)
	in := render.NewInput(spec, noPlan, settings)
	want := map[string]string{"app.kubernetes.io/managed-by": "k8s-runner", "agyn.dev/managed-by": "agents-orchestrator", "team": "storage"}
	if diff := cmp.Diff(want, in.Claims[0].Labels); diff != "" {
		t.Errorf("labels of the claim (-want +got):\n%s", diff)
	}
	if in.Labels["team"] != "core" || in.Labels["agyn.io/workload-id"] != id {
		t.Errorf("labels of the workload: %v", in.Labels)
	}
	if diff := cmp.Diff(untouched, spec); diff != "" {
		t.Errorf("the request changes (-before +after):\n%s", diff)
	}
}
