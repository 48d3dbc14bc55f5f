package render_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

// TestSealSets has templates that set what identifies the Pod, or do not.
func TestSealSets(t *testing.T) {
	spec := "\nspec:\n  containers:\n  - {name: main, image: busybox}\n"
	for name, metadata := range map[string]string{
		"nothing":        "",
		"null":           "metadata:",
		"null in it":     "metadata: {labels: , annotations: , name: , namespace: }",
		"another name":   "metadata: {name: other}",
		"namespace":      "metadata: {namespace: kube-system}",
		"another id":     "metadata: {labels: {agyn.io/workload-id: x, app.kubernetes.io/managed-by: me, agyn.dev/managed-by: me}}",
		"null labels":    "metadata: {labels: {agyn.io/workload-id: , app.kubernetes.io/managed-by: , agyn.dev/managed-by: }}",
		"another digest": "metadata: {annotations: {agyn.io/request-digest: x, agyn.io/templates-digest: x}}",
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, map[string]string{"pod.yaml": "apiVersion: v1\nkind: Pod\n" + metadata + spec})
			request := specOf(t, someRequest)
			want := map[string]any{
				"name":      "workload-" + id,
				"namespace": "workloads",
				"labels": map[string]any{
					"app.kubernetes.io/managed-by": "k8s-runner",
					"agyn.io/workload-id":          id,
					"agyn.dev/managed-by":          "agents-orchestrator",
				},
				"annotations": map[string]any{
					"agyn.io/request-digest":   request.Digest,
					"agyn.io/templates-digest": set.Digest(),
				},
			}
			pod := renderPod(t, set, request)
			if diff := cmp.Diff(want, pod.Object["metadata"]); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if on := pod.Object["spec"].(map[string]any)["automountServiceAccountToken"]; on != false {
				t.Errorf("automountServiceAccountToken is %v", on)
			}
		})
	}
}

func TestSealKeepsWhatTemplatesMaySet(t *testing.T) {
	pod := renderPod(t, compile(t, map[string]string{"pod.yaml": `
apiVersion: v1
kind: Pod
metadata:
  labels: {app: x, <<: {{ .Labels }}}
  annotations: {note: {{ .Properties.colour }}}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: busybox}
  - {name: proxy, image: proxy}
`}), specOf(t, someRequest))
	labels, annotations := pod.GetLabels(), pod.GetAnnotations()
	if labels["app"] != "x" || labels["team"] != "core" || annotations["note"] != "blue" {
		t.Errorf("labels %v, annotations %v", labels, annotations)
	}
	if n := len(pod.Object["spec"].(map[string]any)["containers"].([]any)); n != 2 {
		t.Errorf("%d containers", n)
	}
}

func TestSealRefuses(t *testing.T) {
	for name, c := range map[string]struct{ pod, where string }{
		"an owner":               {podOf("  ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: b}]\n"), "pod.yaml:5: metadata.ownerReferences "},
		"no owner":               {podOf("  ownerReferences: []\n"), "pod.yaml:5: metadata.ownerReferences "},
		"a finalizer":            {podOf("  finalizers: [a/b]\n"), "pod.yaml:5: metadata.finalizers "},
		"a made name":            {podOf("  generateName: a\n"), "pod.yaml:5: metadata.generateName "},
		"a resource version":     {podOf("  resourceVersion: \"1\"\n"), "pod.yaml:5: metadata.resourceVersion "},
		"managed fields":         {podOf("  managedFields: []\n"), "pod.yaml:5: metadata.managedFields "},
		"a status":               {podWith("status: {phase: Running}\n"), "pod.yaml:9: status "},
		"a token":                {podWith("  automountServiceAccountToken: true\n"), "pod.yaml:9: spec.automountServiceAccountToken "},
		"a projected token":      {podWith("  volumes:\n  - name: a\n    projected:\n      sources:\n      - configMap: {name: a}\n      - serviceAccountToken: {path: token}\n"), "pod.yaml:14: spec.volumes[0].projected.sources[1].serviceAccountToken "},
		"a certificate":          {podWith("  volumes:\n  - name: a\n    projected:\n      sources:\n      - podCertificate: {signerName: kubernetes.io/kube-apiserver-client-pod, keyType: ED25519}\n"), "pod.yaml:13: spec.volumes[0].projected.sources[0].podCertificate "},
		"another's certificate":  {podWith("  volumes:\n  - name: a\n    projected:\n      sources:\n      - podCertificate: {signerName: example.com/mine, keyType: ED25519}\n"), "pod.yaml:13: spec.volumes[0].projected.sources[0].podCertificate "},
		"another first":          {strings.ReplaceAll(podWith(""), "name: main", "name: proxy"), "pod.yaml:7: spec.containers[0].name "},
		"main as the second one": {strings.ReplaceAll(podWith("  - name: main\n"), "  - name: main\n    image", "  - name: proxy\n    image"), "pod.yaml:7: spec.containers[0].name "},
		"a first one by a value": {strings.ReplaceAll(podWith(""), "name: main", "name: {{ \"proxy\" }}"), "pod.yaml:7: spec.containers[0].name "},
		"no container":           {"apiVersion: v1\nkind: Pod\nspec: {}\n", "pod.yaml:3: spec.containers[0].name "},
		"null containers":        {"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n", "pod.yaml:4: spec.containers[0].name "},
		"no spec":                {"apiVersion: v1\nkind: Pod\n", "pod.yaml:1: spec.containers[0].name "},
		"main as an init one":    {"apiVersion: v1\nkind: Pod\nspec:\n  initContainers: [{name: main}]\n  containers: [{name: proxy}]\n", "pod.yaml:5: spec.containers[0].name "},
	} {
		t.Run(name, func(t *testing.T) {
			err := renderError(t, map[string]string{"pod.yaml": c.pod})
			if !strings.HasPrefix(err.Error(), c.where) {
				t.Errorf("the error does not start with %q: %v", c.where, err)
			}
		})
	}
}

// podOf is a template of a Pod with lines added to its metadata.
func podOf(metadata string) string {
	return strings.Replace(podWith(""), "spec:\n", metadata+"spec:\n", 1)
}

// TestCollisions has requests with names and paths that a template takes as
// well: they are told so, with their own fields (C07).
func TestCollisions(t *testing.T) {
	template := `
apiVersion: v1
kind: Pod
spec:
  containers:
  {{- range .Containers }}
  - name: {{ .Name }}
    image: {{ .Image }}
    env:
    - {name: HOME, value: /home}
    {{- toYaml .Env | nindent 4 }}
    volumeMounts:
    - {name: home, mountPath: /home/}
    {{- toYaml .Mounts | nindent 4 }}
  {{- end }}
  - {name: proxy, image: proxy}
  initContainers:
  {{- range .InitContainers }}
  - name: {{ .Name }}
    image: {{ .Image }}
    volumeMounts:
    - {name: home, mountPath: /home}
    {{- toYaml .Mounts | nindent 4 }}
  {{- end }}
  volumes:
  - name: home
  {{- range .Volumes }}
  - name: {{ .Name }}
  {{- end }}
`
	set := compile(t, map[string]string{"pod.yaml": template})
	const volume = "volumes: [{name: w, kind: 1}]"
	for name, c := range map[string]struct {
		request string
		want    []string
	}{
		"none":               {`{main: {image: a, env: [{name: A, value: b}], mounts: [{volume: w, mount_path: /w}]}, sidecars: [{image: a}], ` + volume + `}`, nil},
		"a mount":            {`{main: {image: a, mounts: [{volume: w, mount_path: /w}, {volume: w, mount_path: /home}]}, ` + volume + `}`, []string{"duplicate_mount_path main.mounts[1].mount_path"}},
		"of a sidecar":       {`{main: {image: a}, sidecars: [{image: a}, {image: a, mounts: [{volume: w, mount_path: /home/}]}], ` + volume + `}`, []string{"duplicate_mount_path sidecars[1].mounts[0].mount_path"}},
		"of an init one":     {`{main: {image: a}, init_containers: [{image: a, mounts: [{volume: w, mount_path: /home/}]}], ` + volume + `}`, []string{"duplicate_mount_path init_containers[0].mounts[0].mount_path"}},
		"a variable":         {`{main: {image: a, env: [{name: HOME, value: ` + secret + `}]}, ` + volume + `}`, []string{"duplicate_env_name main.env"}},
		"a container":        {`{main: {image: a}, sidecars: [{image: a}, {image: a, name: proxy}], ` + volume + `}`, []string{"duplicate_container_name sidecars[1].name"}},
		"an init container":  {`{main: {image: a}, init_containers: [{image: a, name: proxy}], ` + volume + `}`, []string{"duplicate_container_name init_containers[0].name"}},
		"a volume":           {`{main: {image: a}, volumes: [{name: w, kind: 1}, {name: home, kind: 1}]}`, []string{"duplicate_volume_name volumes[1].name"}},
		"all":                {`{main: {image: a, env: [{name: HOME, value: x}], mounts: [{volume: home, mount_path: /home}]}, volumes: [{name: home, kind: 1}]}`, []string{"duplicate_volume_name volumes[0].name", "duplicate_env_name main.env", "duplicate_mount_path main.mounts[0].mount_path"}},
		"the main container": {`{main: {image: a, name: proxy}}`, []string{"duplicate_container_name main.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := set.Render(specOf(t, c.request), noPlan, settings)
			var got []string
			var refusal *workload.Error
			if errors.As(err, &refusal) {
				for _, v := range refusal.Violations {
					got = append(got, v.Token+" "+v.Field)
					if !strings.Contains(v.Message, "pod.yaml:") || strings.Contains(v.Message, secret) {
						t.Errorf("the message is %q", v.Message)
					}
				}
			} else if err != nil {
				t.Fatalf("the error is not the request's: %v", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
