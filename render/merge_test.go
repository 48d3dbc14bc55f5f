package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parsed is text as the decoder reads a patch, or an object.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	all, err := (&Set{kinds: newKinds()}).decode("patch.yaml", text, nil, true)
	if err != nil || len(all) != 1 {
		t.Fatalf("of %s: %v", text, err)
	}
	return all[0].object
}

// TestMerge merges patches into one Pod, but for the last ones.
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
	} {
		t.Run(name, func(t *testing.T) {
			got := parsed(t, pod)
			merge(newKinds().shapeOf(podKind), got, parsed(t, c.patch))
			if diff := cmp.Diff(parsed(t, c.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMergeOfOtherKinds: the keys of lists are those of the kind's own types; of a
// kind that is not Kubernetes' own, lists are replaced.
func TestMergeOfOtherKinds(t *testing.T) {
	for name, c := range map[string]struct {
		kind                kind
		object, patch, want string
	}{
		"ports of a Service":       {"v1 Service", `{spec: {ports: [{port: 80}, {port: 90}]}}`, `{spec: {ports: [{port: 90, name: b}]}}`, `{spec: {ports: [{port: 80}, {port: 90, name: b}]}}`},
		"a port deleted":           {"v1 Service", `{spec: {ports: [{port: 80}, {port: 90}]}}`, `{spec: {ports: [{port: 80, $patch: delete}]}}`, `{spec: {ports: [{port: 90}]}}`},
		"rules of an Ingress":      {"networking.k8s.io/v1 Ingress", `{spec: {rules: [{host: a}]}}`, `{spec: {rules: [{host: b}]}}`, `{spec: {rules: [{host: b}]}}`},
		"a policy's rules":         {policyKind, `{spec: {egress: [{ports: [{port: 1}]}]}}`, `{spec: {egress: [{ports: [{port: 53}, {port: 54}]}]}}`, `{spec: {egress: [{ports: [{port: 1}]}, {ports: [{port: 53}, {port: 54}]}]}}`},
		"data of a ConfigMap":      {configMapKind, `{data: {a: x, b: y}}`, `{data: {b: null, c: z}}`, `{data: {a: x, c: z}}`},
		"a list of a resource":     {"a.example/v1 Thing", `{spec: {containers: [{name: a, x: 1}], tolerations: [{key: a}]}}`, `{spec: {containers: [{name: a, y: 2}], tolerations: []}}`, `{spec: {containers: [{name: a, y: 2}], tolerations: []}}`},
		"maps of a resource":       {"a.example/v1 Thing", `{metadata: {labels: {a: b}}, spec: {deep: {a: 1, b: 2}, flat: 1}}`, `{metadata: {labels: {c: d}}, spec: {deep: {b: null, c: 3}, flat: {a: null, b: 1}}}`, `{metadata: {labels: {a: b, c: d}}, spec: {deep: {a: 1, c: 3}, flat: {b: 1}}}`},
		"the schema of a resource": {"a.example/v1 Thing", `{spec: {}}`, `{spec: {$ref: x}}`, `{spec: {$ref: x}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := parsed(t, c.object)
			merge(newKinds().shapeOf(c.kind), got, parsed(t, c.patch))
			if diff := cmp.Diff(parsed(t, c.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMergeLeavesThePatch, which another object may get as well.
func TestMergeLeavesThePatch(t *testing.T) {
	const text = `{spec: {containers: [{name: main, env: [{name: B}]}, {name: new, image: x}], nodeSelector: {a: b}}}`
	for _, k := range []kind{podKind, "a.example/v1 Thing"} {
		shape := newKinds().shapeOf(k)
		patch := parsed(t, text)
		for range 2 {
			object := parsed(t, `{spec: {containers: [{name: main}]}}`)
			merge(shape, object, patch)
			merge(shape, object, parsed(t, `{spec: {containers: [{name: new, image: y}], nodeSelector: {a: c}}}`))
			if diff := cmp.Diff(parsed(t, text), patch); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", k, diff)
			}
		}
	}
}
