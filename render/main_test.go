package render_test

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// secret is an environment value of the test requests. It must be in no error.
const secret = "s3cr3t-value"

const id = "00000000-0000-4000-8000-00000000000a"

// someRequest has a bit of everything that a template can see.
const someRequest = `
workload_id: ` + id + `
main:
  image: busybox
  cmd: [run, "", "$(X)"]
  env: [{name: TOKEN, value: ` + secret + `}, {name: NUMBER, value: "0123"}]
  working_dir: /work
  mounts: [{volume: work, mount_path: /work}]
  additional_properties: {note: "a: b"}
sidecars: [{image: proxy}]
init_containers: [{image: prepare}]
volumes: [{name: work, kind: VOLUME_KIND_EPHEMERAL}]
dns_config: {searches: [b.example, a.example]}
labels: {team: core, "yes": "no"}
additional_properties: {colour: blue, secret: ` + secret + `}
`

// noPlan is that of a request without a name of the catalog.
var noPlan = &catalog.Plan{}

var settings = render.Settings{Namespace: "workloads", FSGroup: 1000, ClaimSize: "10Gi", AllowedPrivileges: render.Privileges()}

func specOf(t testing.TB, text string) *workload.Spec {
	t.Helper()
	spec, err := request.Parse(requesttest.Parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// filesOf returns the files of an archive in txtar's form, or if it holds none,
// the text as pod.yaml.
func filesOf(text string) map[string]string {
	archive := txtar.Parse([]byte(text))
	if len(archive.Files) == 0 {
		return map[string]string{"pod.yaml": text}
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

func compile(t testing.TB, files map[string]string) *render.Set {
	t.Helper()
	set, err := render.Compile(files)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func shipped(t testing.TB) *render.Set {
	t.Helper()
	files, err := templates.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, files)
}

// renderPod renders spec, which must make one Pod.
func renderPod(t testing.TB, set *render.Set, spec *workload.Spec) *unstructured.Unstructured {
	t.Helper()
	manifests, err := set.Render(spec, noPlan, settings)
	if err != nil {
		t.Fatal(err)
	}
	return manifests.Pod
}

// renderError renders someRequest with a template set, which must fail without
// a secret in the error.
func renderError(t testing.TB, files map[string]string) error {
	t.Helper()
	manifests, err := compile(t, files).Render(specOf(t, someRequest), noPlan, settings)
	if err == nil {
		t.Fatalf("it renders as %v", manifests)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error holds a secret: %v", err)
	}
	if strings.ContainsAny(err.Error(), "\uE000\uE001\uE002\uE003") {
		t.Errorf("the error holds a slot or a mark: %q", err)
	}
	return err
}

// podWith is a template of a Pod with lines added to its spec.
func podWith(lines string) string {
	return `apiVersion: v1
kind: Pod
metadata:
  name: {{ .Name }}
spec:
  containers:
  - name: main
    image: busybox
` + lines
}
