package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/agynio/k8s-runner/engine"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/workload"
)

// plainRequest has each string once, except for names and what refers to them,
// in every field of the contract.
const plainRequest = `
workload_id: 00000000-0000-4000-8000-00000000000a
main:
  name: agent
  image: image-a
  cmd: [arg-a, arg-b]
  entrypoint: entry-a
  env: [{name: ENV_A, value: value-a}, {name: ENV_B, value: value-b}]
  working_dir: /dir-a
  mounts: [{volume: volume-a, mount_path: /mount-a}, {volume: volume-b, mount_path: /mount-b}]
  inline_file_mounts: [{path: /file-a}, {path: /file-b}]
  required_capabilities: [NET_ADMIN, CHOWN]
  resources: {requests_cpu: 101m, requests_memory: 102Mi, limits_cpu: 103m, limits_memory: 104Mi}
  additional_properties: {property-a: property-value-a}
sidecars:
- name: proxy
  image: image-b
  cmd: [arg-c]
  entrypoint: entry-b
  env: [{name: ENV_C, value: value-c}]
  working_dir: /dir-b
  mounts: [{volume: volume-a, mount_path: /mount-c}]
  inline_file_mounts: [{path: /file-a}]
  required_capabilities: [KILL]
  resources: {requests_cpu: 111m, requests_memory: 112Mi, limits_cpu: 113m, limits_memory: 114Mi}
  additional_properties: {property-b: property-value-b}
init_containers:
- name: prepare
  image: image-c
  cmd: [arg-d]
  entrypoint: entry-c
  env: [{name: ENV_D, value: value-d}]
  working_dir: /dir-c
  mounts: [{volume: volume-b, mount_path: /mount-d}]
  required_capabilities: [SETUID]
  resources: {requests_cpu: 121m, requests_memory: 122Mi, limits_cpu: 123m, limits_memory: 124Mi}
  additional_properties: {property-c: property-value-c}
- {name: helper, image: image-d, additional_properties: {restart_policy: Always}}
volumes:
- {name: volume-a, kind: 1, size: 1Gi, additional_properties: {property-d: property-value-d}}
- {name: volume-b, kind: 1}
- {name: volume-c, kind: 2, persistent_name: claim-c, size: 2Gi, storage_class: fast, labels: {label-d: label-value-d}, additional_properties: {property-e: property-value-e}}
- {name: volume-d, kind: 2, persistent_name: claim-d, labels: {volume_key: label-value-e}}
dns_config: {nameservers: [10.0.0.1, 10.0.0.2], searches: [search-a, search-b]}
image_pull_credentials:
- {registry: registry-a, username: user-a, password: password-a}
- {registry: registry-b, username: user-b, password: password-b}
inline_files: {/file-a: Y29udGVudC1h, /file-b: Y29udGVudC1i}
labels: {label-a: label-value-a, label-b: label-value-b}
additional_properties: {label.label-c: label-value-c, property-f: property-value-f, property-g: property-value-g}
capabilities: [docker, compute-resources]
flavor: gpu
`

// printsAll are templates that print what the shipped ones do not, and in other
// ways: as keys, in quotes, in blocks, through parts.
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
    {{- range .Volumes }}
    {{- toYaml .Properties | nindent 4 }}
    {{- end }}
    {{- range .InitContainers }}
    {{- range $k, $v := .Properties }}
    init-{{ $k }}: {{ $v }}
    {{- end }}
    {{- end }}
    {{- range .InlineFiles.Files }}
    path-{{ .Path }}: "{{ .Path }}"
    {{- end }}
spec:
  containers:
  {{- range .Containers }}
  - {name: {{ .Name }}, image: {{ quote .Image }}, command: {{ toJson .Command }}, args: [{{ range .Args }}{{ . }}, {{ end }}]}
  {{- end }}
  nodeSelector:
    {{- range .Containers }}
    {{- toYaml .Properties | nindent 4 }}
    {{- end }}
-- claim.yaml --
{{- range .Claims }}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "{{ .Name }}", labels: {{ .Labels }}, annotations: {{ .Properties }}}}
{{- end }}
`

// FuzzStructure puts arbitrary strings into all strings of a request, as far as
// it stays valid. The manifests must have exactly those strings in the places of
// the plain ones, and not one key, item or object more.
func FuzzStructure(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x0eA\n  evil: true\x02$$\x05$(A)\x00"))
	f.Add([]byte("\x0b\xee\x80\x800\xee\x80\x81 \xee\x80\x82\x03{}\n\x03- a\x04a: b\x05---\na\x04\"'\\#\x01*\x02&a\x03<<:"))
	f.Add([]byte("\x04null\x04true\x040123\x031e3\x01~\x07{{ . }}\x02| \x02|-\x02> \x03!!x\x02%A\x01@"))
	f.Add([]byte("\x01\xff\x02\xc3\x28\x03\xe2\x82\xac\x02\r\n\x03\xc2\x85x\x04\xe2\x80\xa8x\x01\x07"))
	engines := map[string]*engine.Engine{"shipped": shipped(f), "all": engineOf(f, printsAll)}
	base := requesttest.Parse(f, plainRequest)
	plain := plainStrings(base)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := substitution{engine: engines["shipped"], base: base, plain: plain, chosen: map[string]string{}, leaves: map[string]string{}}
		fuzzed := s.replaced(data)
		for name, e := range engines {
			want := s.applied(treeOf(t, e, base))
			if diff := cmp.Diff(want, treeOf(t, e, fuzzed)); diff != "" {
				t.Errorf("%s: the manifests with other strings are not the plain ones with them in their places (-want +got):\n%s", name, diff)
			}
		}
	})
}

// plainStrings are the strings of base, which no other string may equal.
func plainStrings(base *runnerv1.StartWorkloadRequest) map[string]bool {
	plain := map[string]bool{}
	requesttest.ReplaceStrings(proto.Clone(base), func(_, old string) string {
		plain[old] = true
		return old
	})
	return plain
}

// A substitution says what stands for which string of the plain request, and
// which leaf of the manifests for which of the plain ones.
type substitution struct {
	engine         *engine.Engine
	base           *runnerv1.StartWorkloadRequest
	plain          map[string]bool
	chosen, leaves map[string]string
}

// replaced returns the request with strings of data in it.
func (s *substitution) replaced(data []byte) *runnerv1.StartWorkloadRequest {
	in := requesttest.Bytes(data)
	requesttest.ReplaceStrings(proto.Clone(s.base), func(where, old string) string {
		if _, done := s.chosen[old]; done || where == "workload_id" || len(in) == 0 {
			return old
		}
		text := in.String()
		if !strings.HasPrefix(where, "inline_files[") {
			text = strings.ToValidUTF8(text, "") // nothing else can be sent
		}
		s.try(where, old, text)
		return old
	})
	s.pairs()
	return s.request()
}

// try chooses text for old unless the request is refused then, or means
// something of another structure.
func (s *substitution) try(where, old, text string) {
	if (text == "" && emptyIsDefault(where)) || old == "restart_policy" {
		return
	}
	if strings.HasSuffix(where, "_path") || strings.HasSuffix(where, "_dir") || (where == "inline_files key "+old) || strings.HasSuffix(where, "].path") {
		text = "/" + text
	}
	if strings.HasPrefix(old, "label.") {
		text = "label." + text
	}
	if s.collides(old, text) {
		return
	}
	s.chosen[old] = text
	spec, _, err := s.engine.Plan(s.request())
	if err != nil {
		delete(s.chosen, old)
		return
	}
	leaf := leafOf(where, text, spec)
	for _, other := range s.leaves {
		if other == leaf {
			delete(s.chosen, old)
			return
		}
	}
	if strings.HasPrefix(old, "label.") {
		s.leaves[old] = text // as a property
	}
	s.leaves[strings.TrimPrefix(old, "label.")] = leaf
}

// emptyIsDefault: where an empty string asks for something else.
func emptyIsDefault(where string) bool {
	for _, end := range []string{"name", "entrypoint", "size", "storage_class", "flavor", "cpu", "memory", ".registry"} {
		if strings.HasSuffix(where, end) {
			return true
		}
	}
	return strings.HasPrefix(where, "main.working_dir")
}

// leafOf is what the manifests have for text.
func leafOf(where, text string, spec *workload.Spec) string {
	switch {
	case strings.HasSuffix(where, ".mount_path"):
		return path.Clean(text)
	case strings.Contains(where, ".cmd"), strings.HasSuffix(where, ".entrypoint"), strings.HasSuffix(where, ".value"):
		return strings.ReplaceAll(text, "$", "$$")
	case strings.Contains(where, ".required_capabilities"):
		return strings.TrimPrefix(strings.ToUpper(text), "CAP_")
	case where == "image_pull_credentials[0].registry":
		return spec.PullCredentials[0].Registry
	case where == "image_pull_credentials[1].registry":
		return spec.PullCredentials[1].Registry
	case strings.HasPrefix(text, "label."):
		return strings.TrimPrefix(text, "label.")
	}
	return text
}

// collides keeps the keys of a map apart, also from those that printsAll and
// the runner add, and names that have a meaning.
func (s *substitution) collides(old, text string) bool {
	bare := strings.TrimPrefix(text, "label.")
	for _, prefix := range append(printedPrefixes(), "label.", "agyn.", "app.kubernetes.io/", "label-", "property-", "file-") {
		if strings.HasPrefix(bare, prefix) {
			return true
		}
	}
	for other, taken := range s.chosen {
		if other != old && strings.TrimPrefix(taken, "label.") == bare {
			return true
		}
	}
	meant := []string{"restart_policy", "read_only_root_filesystem", "docker-daemon", "DOCKER_HOST", "docker-data", "docker-tun", "inline-files"}
	return s.plain[bare] || bare == "a" || slices.Contains(meant, bare) ||
		strings.HasPrefix(text, "label.") != strings.HasPrefix(old, "label.")
}

func printedPrefixes() []string {
	return []string{"quoted-", "single-", "block-", "folded-", "json-", "yaml-", "part-", "text-", "init-", "path-"}
}

// pairs adds the leaves that hold two strings: user:password.
func (s *substitution) pairs() {
	for _, c := range s.base.GetImagePullCredentials() {
		user, password := c.GetUsername(), c.GetPassword()
		pair := func(of func(string) string) string { return of(user) + ":" + of(password) }
		s.leaves[user+":"+password] = pair(func(old string) string {
			if text, ok := s.chosen[old]; ok {
				return text
			}
			return old
		})
	}
}

func (s *substitution) request() *runnerv1.StartWorkloadRequest {
	req := proto.Clone(s.base).(*runnerv1.StartWorkloadRequest)
	requesttest.ReplaceStrings(req, func(_, old string) string {
		if text, ok := s.chosen[old]; ok {
			return text
		}
		return old
	})
	return req
}

// treeOf renders req and returns all of its manifests but the digests, with the
// Secrets' content in the clear.
func treeOf(t *testing.T, e *engine.Engine, req *runnerv1.StartWorkloadRequest) any {
	t.Helper()
	_, manifests, err := e.Render(req)
	if err != nil {
		t.Fatal(err)
	}
	annotations := manifests.Pod.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
	delete(annotations, workload.AnnotationDigest)
	delete(annotations, workload.AnnotationTemplates)
	contents := map[string]string{}
	var objects []any
	for _, m := range manifests.All() {
		if data, ok := m.Object["data"].(map[string]any); ok {
			m.Object["data"] = clear(t, data, contents)
		}
		objects = append(objects, m.Object)
	}
	return keysForContents(objects, contents)
}

// clear decodes the data of a Secret. Keys that stand for a path depend on the
// order of the paths: the content takes their place.
func clear(t *testing.T, data map[string]any, contents map[string]string) any {
	t.Helper()
	var files []string
	for key, value := range data {
		raw, err := base64.StdEncoding.DecodeString(value.(string))
		if err != nil {
			t.Fatal(err)
		}
		if key != ".dockerconfigjson" {
			contents[key] = string(raw)
			files = append(files, string(raw))
			continue
		}
		var config map[string]any
		if err := json.Unmarshal(raw, &config); err != nil {
			t.Fatal(err)
		}
		for _, auth := range config["auths"].(map[string]any) {
			auth := auth.(map[string]any)
			pair, err := base64.StdEncoding.DecodeString(auth["auth"].(string))
			if err != nil || !utf8.Valid(pair) {
				t.Fatalf("auth is %v (%v)", auth["auth"], err)
			}
			auth["auth"] = string(pair)
		}
		return config
	}
	slices.Sort(files)
	items := make(map[string]any, len(files))
	for _, f := range files {
		items["content "+f] = f
	}
	return items
}

// keysForContents replaces the subPath of each mount by what is mounted.
func keysForContents(v any, contents map[string]string) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = keysForContents(v[i], contents)
		}
	case map[string]any:
		for k, item := range v {
			if key, ok := item.(string); ok && k == "subPath" {
				v[k] = contents[key]
				continue
			}
			v[k] = keysForContents(item, contents)
		}
	}
	return v
}

// applied returns a copy of v with other strings, as keys too. A string of the
// plain manifest may follow a prefix of printsAll.
func (s *substitution) applied(v any) any {
	text := func(plain string) string {
		for _, prefix := range append(printedPrefixes(), "content ", "") {
			rest, ok := strings.CutPrefix(plain, prefix)
			if leaf, known := s.leaves[rest]; ok && known {
				return prefix + leaf
			}
		}
		return plain
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.applied(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[text(k)] = s.applied(item)
		}
		return out
	}
	return v
}

// TestEveryStringIsReplaced guards against a fuzz test that replaces nothing:
// these are all the strings that have no other value like v123: names of a closed set, and those that
// follow a syntax of their own.
func TestEveryStringIsReplaced(t *testing.T) {
	base := requesttest.Parse(t, plainRequest)
	var data []byte
	for i := range 400 {
		data = append(data, fmt.Sprintf("\x04v%03d", i)...)
	}
	s := substitution{
		engine: shipped(t), base: base, plain: plainStrings(base),
		chosen: map[string]string{}, leaves: map[string]string{},
	}
	s.replaced(data)
	var kept []string
	for old := range s.plain {
		if _, replaced := s.chosen[old]; !replaced {
			kept = append(kept, old)
		}
	}
	slices.Sort(kept)
	want := []string{
		"", "00000000-0000-4000-8000-00000000000a", "10.0.0.1", "10.0.0.2",
		"101m", "102Mi", "103m", "104Mi", "111m", "112Mi", "113m", "114Mi", "121m", "122Mi", "123m", "124Mi", "1Gi", "2Gi",
		"Always", "CHOWN", "KILL", "NET_ADMIN", "SETUID", "compute-resources", "docker", "fast", "gpu", "restart_policy",
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
