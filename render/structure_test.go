package render_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/workload"
)

// plainRequest has each string once, except for the names of volumes.
const plainRequest = `
workload_id: ` + id + `
main:
  name: agent
  image: image-a
  cmd: [arg-a, arg-b]
  entrypoint: entry-a
  env: [{name: ENV_A, value: value-a}, {name: ENV_B, value: value-b}]
  working_dir: /dir-a
  mounts: [{volume: volume-a, mount_path: /mount-a}, {volume: volume-b, mount_path: /mount-b}]
  additional_properties: {property-a: property-value-a}
sidecars:
- {name: proxy, image: image-b, cmd: [arg-c], entrypoint: entry-b, env: [{name: ENV_C, value: value-c}], working_dir: /dir-b, mounts: [{volume: volume-a, mount_path: /mount-c}]}
init_containers:
- {name: prepare, image: image-c, cmd: [arg-d], entrypoint: entry-c, env: [{name: ENV_D, value: value-d}], working_dir: /dir-c, mounts: [{volume: volume-b, mount_path: /mount-d}]}
volumes:
- {name: volume-a, kind: 1, additional_properties: {property-b: property-value-b}}
- {name: volume-b, kind: 1}
dns_config: {nameservers: [10.0.0.1, 10.0.0.2], searches: [search-a, search-b]}
labels: {label-a: label-value-a, label-b: label-value-b}
additional_properties: {label.label-c: label-value-c, property-c: property-value-c, property-d: property-value-d}
`

// printsAll is a template that prints what the shipped ones do not, and in
// other ways: as keys, in quotes, in blocks, through parts.
const printsAll = `-- _all.tpl --
{{- define "text" }}{{ . }}{{ end }}
{{- define "pair" }}{{ .k }}: {{ .v }}{{ end }}
-- pod.yaml --
apiVersion: v1
kind: Pod
metadata:
  labels: {a: x, <<: {{ .Labels }}}
  annotations:
    {{- range $k, $v := .Properties }}
    {{ $k }}: {{ $v }}
    quoted-{{ $k | quote }}: "{{ $v }}"
    single-{{ $k }}: '{{ $v }}'
    block-{{ $k }}: |-
      {{ $v }}
    folded-{{ $k }}: >-
      {{ $v }}
    json-{{ $k }}: {{ toJson $v }}
    yaml-{{ $k }}: {{ toYaml $v | nindent 6 }}
    {{ include "pair" (dict "k" (print "part-" $k) "v" $v) }}
    {{ include "text" $k | print "text-" }}: {{ include "text" $v }}
    {{- end }}
    {{- with index .Volumes 0 }}
    {{- toYaml .Properties | nindent 4 }}
    {{- end }}
spec:
  containers:
  {{- range .Containers }}
  - {name: {{ .Name }}, image: {{ quote .Image }}, command: {{ toJson .Command }}, args: [{{ range .Args }}{{ . }}, {{ end }}]}
  {{- end }}
  nodeSelector: {{ (index .Containers 0).Properties }}
`

// FuzzStructure puts arbitrary strings into all strings of a request, as far as
// it stays valid. The manifest must have exactly those strings in the places of
// the plain ones, and not one key, item or object more.
func FuzzStructure(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x0eA\n  evil: true\x02$$\x05$(A)\x00"))
	f.Add([]byte("\x0b\xee\x80\x800\xee\x80\x81 \xee\x80\x82\x03{}\n\x03- a\x04a: b\x05---\na\x04\"'\\#\x01*\x02&a\x03<<:"))
	f.Add([]byte("\x04null\x04true\x040123\x031e3\x01~\x07{{ . }}\x02| \x02|-\x02> \x03!!x\x02%A\x01@"))
	f.Add([]byte("\x01\xff\x02\xc3\x28\x03\xe2\x82\xac\x02\r\n\x03\xc2\x85x\x04\xe2\x80\xa8x\x01\x07"))
	sets := map[string]*render.Set{"shipped": shipped(f), "all": compile(f, filesOf(printsAll))}
	base := requesttest.Parse(f, plainRequest)
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzed, leaves := replaced(t, base, data)
		for name, set := range sets {
			want := substituted(treeOf(t, set, base), leaves)
			if diff := cmp.Diff(want, treeOf(t, set, fuzzed)); diff != "" {
				t.Errorf("%s: the manifest with other strings is not the plain one with them in their places (-want +got):\n%s", name, diff)
			}
		}
	})
}

// replaced returns base with strings of data in it, and what then stands for
// which string of the plain manifest.
func replaced(t *testing.T, base *runnerv1.StartWorkloadRequest, data []byte) (*runnerv1.StartWorkloadRequest, map[string]string) {
	in := requesttest.Bytes(data)
	chosen, leaves := map[string]string{}, map[string]string{}
	requesttest.ReplaceStrings(proto.Clone(base), func(where, old string) string {
		if _, done := chosen[old]; done || where == "workload_id" || len(in) == 0 {
			return old
		}
		text := in.String()
		leaf := text
		if text == "" && (strings.HasSuffix(where, "name") || strings.HasSuffix(where, "entrypoint")) {
			return old // an empty one stands for the default
		}
		switch {
		case strings.HasSuffix(where, ".mount_path"):
			text = "/" + text
			leaf = path.Clean(text)
		case strings.HasSuffix(where, ".working_dir"):
			text = "/" + text
			leaf = text
		case strings.Contains(where, ".cmd"), strings.HasSuffix(where, ".entrypoint"), strings.HasSuffix(where, ".value"):
			leaf = strings.ReplaceAll(text, "$", "$$")
		case strings.HasPrefix(old, "label."):
			leaves[old] = "label." + text // as a property
			text = "label." + text
		}
		chosen[old] = text
		if _, err := request.Parse(withStrings(base, chosen)); err != nil || collides(chosen, old) {
			delete(chosen, old)
			delete(leaves, old)
			return old
		}
		leaves[strings.TrimPrefix(old, "label.")] = leaf
		return old
	})
	return withStrings(base, chosen), leaves
}

// collides keeps the keys of a map apart, also from those that printsAll and
// the runner add.
func collides(chosen map[string]string, old string) bool {
	text := strings.TrimPrefix(chosen[old], "label.")
	for _, prefix := range []string{"quoted-", "single-", "block-", "folded-", "json-", "yaml-", "part-", "text-", "label.", "agyn.", "app.kubernetes.io/", "label-", "property-"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	for other, taken := range chosen {
		if other != old && strings.TrimPrefix(taken, "label.") == text {
			return true
		}
	}
	return text == "a" || strings.HasPrefix(chosen[old], "label.label.") || (strings.HasPrefix(chosen[old], "label.") && !strings.HasPrefix(old, "label."))
}

func withStrings(base *runnerv1.StartWorkloadRequest, chosen map[string]string) *runnerv1.StartWorkloadRequest {
	req := proto.Clone(base).(*runnerv1.StartWorkloadRequest)
	requesttest.ReplaceStrings(req, func(_, old string) string {
		if text, ok := chosen[old]; ok {
			return text
		}
		return old
	})
	return req
}

// treeOf renders req and returns all of its manifest but the digests.
func treeOf(t *testing.T, set *render.Set, req *runnerv1.StartWorkloadRequest) any {
	t.Helper()
	spec, err := request.Parse(req)
	if err != nil {
		t.Fatal(err)
	}
	pod := renderPod(t, set, spec)
	annotations := pod.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
	delete(annotations, workload.AnnotationDigest)
	delete(annotations, workload.AnnotationTemplates)
	return pod.Object
}

// substituted returns a copy of v with other strings, as keys too. A string of
// the plain manifest may follow a prefix of printsAll.
func substituted(v any, leaves map[string]string) any {
	text := func(s string) string {
		for _, prefix := range []string{"", "quoted-", "single-", "block-", "folded-", "json-", "yaml-", "part-", "text-"} {
			plain, ok := strings.CutPrefix(s, prefix)
			if leaf, known := leaves[plain]; ok && known {
				return prefix + leaf
			}
		}
		return s
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = substituted(item, leaves)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[text(k)] = substituted(item, leaves)
		}
		return out
	}
	return v
}
