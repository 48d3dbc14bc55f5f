package render_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/render"
)

// whereFiles print fields in all the ways in which they can be printed. Their
// lines count from 1 in each file.
const whereFiles = `-- _parts.tpl --
{{- define "container" -}}
name: {{ .Name }}
image: {{ .Image }}
env:
- name: A
  value: a
{{- range .Env }}
- name: {{ .Name }}
  value: {{ .Value }}
{{- end }}
{{- end }}
-- pod.yaml --
{{- /* The Pod. */ -}}
apiVersion: v1
kind: Pod
metadata:
  labels: {{ .Labels }}
  annotations:
    {{- range $k, $v := .Properties }}
    key-{{ $k }}: {{ $v }}
    {{- end }}
    block: |
      {{ .Name }}
      more
    <<: {{ dict "merged" "x" }}
    last: x
spec:
  containers:
  {{- range .Containers }}
  -{{ include "container" . | nindent 4 }}
  {{- end }}
  tolerations:
  - key: first
  {{- toYaml (list (dict "key" "second") (dict "key" "third")) | nindent 2 }}
  - key: fourth
    operator: Exists
  {{ print "host" "name" }}: x
  dnsConfig:
    {{- toYaml .DNS | nindent 4 }}
  priority: 1
-- secrets.yaml --
{{- range .Containers }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ $.Name }}-{{ .Name }}
stringData:
  {{ .Name }}: {{ .Image }}
{{- end }}
`

// TestWhere asks for the lines of fields: of the text that stands there, of
// parts, of keys that are values, of values that become several lines.
func TestWhere(t *testing.T) {
	manifests, err := compile(t, filesOf(whereFiles)).Render(specOf(t, someRequest), noPlan, settings)
	if err != nil {
		t.Fatal(err)
	}
	pod, first, second := manifests.Pod, manifests.Owned[0], manifests.Owned[1]
	for _, c := range []struct {
		object *unstructured.Unstructured
		path   []any
		want   string
	}{
		{pod, nil, "pod.yaml:2"},
		{pod, []any{"kind"}, "pod.yaml:3"},
		{pod, []any{"metadata", "labels"}, "pod.yaml:5"},
		{pod, []any{"metadata", "labels", "team"}, "pod.yaml:5"},
		{pod, []any{"metadata", "annotations", "key-colour"}, "pod.yaml:8"},
		{pod, []any{"metadata", "annotations", "key-secret"}, "pod.yaml:8"},
		{pod, []any{"metadata", "annotations", "block"}, "pod.yaml:10"},
		{pod, []any{"metadata", "annotations", "last"}, "pod.yaml:14"},
		{pod, []any{"metadata", "annotations", "merged"}, "pod.yaml:8"}, // the start of what it is a part of
		{pod, []any{"spec", "containers", 0, "image"}, "_parts.tpl:3"},
		{pod, []any{"spec", "containers", 0, "env", 0, "value"}, "_parts.tpl:6"},
		{pod, []any{"spec", "containers", 0, "env", 1, "name"}, "_parts.tpl:8"},
		{pod, []any{"spec", "containers", 0, "env", 2, "value"}, "_parts.tpl:9"},
		{pod, []any{"spec", "containers", 1, "name"}, "_parts.tpl:2"},
		{pod, []any{"spec", "containers", 0, "nothing"}, "_parts.tpl:2"},
		{pod, []any{"spec", "containers", 7}, "pod.yaml:18"},
		{pod, []any{"spec", "tolerations", 0, "key"}, "pod.yaml:21"},
		{pod, []any{"spec", "tolerations", 1}, "pod.yaml:22"},
		{pod, []any{"spec", "tolerations", 2, "key"}, "pod.yaml:22"},
		{pod, []any{"spec", "tolerations", 3, "key"}, "pod.yaml:23"},
		{pod, []any{"spec", "tolerations", 3, "operator"}, "pod.yaml:24"},
		{pod, []any{"spec", "hostname"}, "pod.yaml:25"},
		{pod, []any{"spec", "dnsConfig", "searches"}, "pod.yaml:27"},
		{pod, []any{"spec", "priority"}, "pod.yaml:28"},
		{first, []any{"metadata", "name"}, "secrets.yaml:6"},
		{first, []any{"stringData", "main"}, "secrets.yaml:8"},
		{second, []any{"stringData", "sidecar-1"}, "secrets.yaml:8"},
		{second, []any{"stringData", "main"}, "secrets.yaml:8"}, // not there
		{second, []any{"kind"}, "secrets.yaml:4"},
		{&unstructured.Unstructured{}, nil, ""},
	} {
		if got := manifests.Where(c.object, c.path...); got != c.want {
			t.Errorf("%v of %s is at %q, not %q", c.path, c.object.GetName(), got, c.want)
		}
	}
}

// TestWhereOutlivesItsRender: other renders take the same executor and leave
// the places of earlier ones as they are.
func TestWhereOutlivesItsRender(t *testing.T) {
	set := compile(t, filesOf(whereFiles))
	manifests := func(request string) *render.Manifests {
		m, err := set.Render(specOf(t, request), noPlan, settings)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := manifests(someRequest)
	for range 10 {
		manifests(`{main: {image: other, name: another}, dns_config: {searches: [a]}, additional_properties: {x: a, y: b, z: c}}`)
	}
	if got := first.Where(first.Pod, "metadata", "annotations", "key-secret"); got != "pod.yaml:8" {
		t.Errorf("it is at %q now", got)
	}
}
