package render

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMerge merges patches into one Pod.
func TestMerge(t *testing.T) {
	const pod = `{spec: {containers: [{name: main, image: a, args: [x], env: [{name: A, value: "1"}], securityContext: {capabilities: {add: [KILL]}}}, {name: side, image: b}],
		tolerations: [{key: a}], nodeSelector: {pool: one}, volumes: [{name: w, emptyDir: {}}]}}`
	with := func(old, new string) string { return strings.Replace(pod, old, new, 1) }
	for name, c := range map[string]struct{ patch, want string }{
		"nothing":               {`{}`, pod},
		"a field":               {`{spec: {hostname: h}}`, with("{spec: {", "{spec: {hostname: h, ")},
		"a map":                 {`{spec: {nodeSelector: {zone: z}}}`, with("{pool: one}", "{pool: one, zone: z}")},
		"null deletes":          {`{spec: {nodeSelector: null}}`, with("nodeSelector: {pool: one}, ", "")},
		"a map deleted":         {`{spec: {nodeSelector: {$patch: delete}}}`, with("nodeSelector: {pool: one}, ", "")},
		"a map replaced":        {`{spec: {nodeSelector: {$patch: replace, zone: z}}}`, with("{pool: one}", "{zone: z}")},
		"a map merged, said so": {`{spec: {nodeSelector: {$patch: merge, zone: z}}}`, with("{pool: one}", "{pool: one, zone: z}")},
		"a toleration":          {`{spec: {tolerations: [{key: b}]}}`, with("[{key: a}]", "[{key: a}, {key: b}]")},
		"the same toleration":   {`{spec: {tolerations: [{key: a}]}}`, pod},
		"tolerations replaced":  {`{spec: {tolerations: [{$patch: replace}, {key: b}]}}`, with("[{key: a}]", "[{key: b}]")},
		"a sidecar":             {`{spec: {containers: [{name: proxy, image: p}]}}`, with("{name: side, image: b}", "{name: side, image: b}, {name: proxy, image: p}")},
		"a sidecar, written first": {`{spec: {containers: [{name: proxy, image: p}, {name: main, image: z}]}}`,
			strings.Replace(with("image: a", "image: z"), "{name: side, image: b}", "{name: side, image: b}, {name: proxy, image: p}", 1)},
		"a container deleted":   {`{spec: {containers: [{name: side, $patch: delete}]}}`, with(", {name: side, image: b}", "")},
		"one that is not there": {`{spec: {containers: [{name: other, $patch: delete}]}}`, pod},
		"a container replaced":  {`{spec: {containers: [{name: side, $patch: replace, image: c}]}}`, with("{name: side, image: b}", "{name: side, image: c}")},
		"a variable":            {`{spec: {containers: [{name: main, env: [{name: B, value: "2"}]}]}}`, with(`value: "1"}`, `value: "1"}, {name: B, value: "2"}`)},
		"the same variable":     {`{spec: {containers: [{name: main, env: [{name: A, value: "2"}]}]}}`, with(`value: "1"`, `value: "2"`)},
		"arguments":             {`{spec: {containers: [{name: main, args: [y]}]}}`, with("args: [x]", "args: [y]")},
		"a capability":          {`{spec: {containers: [{name: main, securityContext: {capabilities: {add: [CHOWN]}}}]}}`, with("[KILL]", "[KILL, CHOWN]")},
		"another source":        {`{spec: {volumes: [{name: w, emptyDir: null, secret: {secretName: s}}]}}`, with("emptyDir: {}", "secret: {secretName: s}")},
		"what is not there":     {`{spec: {affinity: {nodeAffinity: {$patch: merge}}, initContainers: [{name: i, image: x, $patch: merge}]}}`, with("{spec: {", "{spec: {affinity: {nodeAffinity: {}}, initContainers: [{name: i, image: x}], ")},
		"ports without a key":   {`{spec: {egress: [{ports: [{port: 53}, {port: 54}]}]}}`, with("{spec: {", "{spec: {egress: [{ports: [{port: 53}, {port: 54}]}], ")},
	} {
		t.Run(name, func(t *testing.T) {
			got := parsed(t, pod)
			merge(got, parsed(t, c.patch))
			if diff := cmp.Diff(parsed(t, c.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMergeLeavesThePatch, which another object may get as well.
func TestMergeLeavesThePatch(t *testing.T) {
	const text = `{spec: {containers: [{name: main, env: [{name: B}]}, {name: new, image: x}], nodeSelector: {a: b}}}`
	patch := parsed(t, text)
	for range 2 {
		object := parsed(t, `{spec: {containers: [{name: main}]}}`)
		merge(object, patch)
		merge(object, parsed(t, `{spec: {containers: [{name: new, image: y}], nodeSelector: {a: c}}}`))
		if diff := cmp.Diff(parsed(t, text), patch); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// TestMergeKeys compares the keys with those in the tags of Kubernetes' types.
func TestMergeKeys(t *testing.T) {
	seen := map[reflect.Type]bool{}
	lists := 0
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key := f.Tag.Get("patchMergeKey"); key != "" || (f.Type.Kind() == reflect.Slice && mergeKey(name) != "") {
				lists++
				if got := mergeKey(name); got != key {
					t.Errorf("%s.%s has the merge key %q and is merged by %q", typ, name, key, got)
				}
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[corev1.PodSpec]())
	if lists < 10 {
		t.Errorf("only %d lists were seen", lists)
	}
}
