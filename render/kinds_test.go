package render_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/render"
)

// allowing are settings of an operator who allows some kinds: three of
// Kubernetes' own, and others.
func allowing() render.Settings {
	s := settings
	s.AllowedKinds = []string{"v1 ConfigMap", "v1 Service", "policy/v1 PodDisruptionBudget", "a.example/v1 Thing", "a.example/v2 Thing", "b.example/v1 Thing"}
	return s
}

const (
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-x\n"
	service   = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Name }}-x\n"
	thing     = "apiVersion: a.example/v1\nkind: Thing\nmetadata:\n  name: {{ .Name }}-x\n"
)

func renderKinds(t *testing.T, object string, patches ...string) (*render.Manifests, error) {
	t.Helper()
	layer := render.Layer{Name: "p", Patches: map[string]string{}}
	for _, p := range patches {
		layer.Patches["x.yaml"] = p
	}
	set, err := render.Compile(map[string]string{"pod.yaml": podWith(""), "x.yaml": object}, layer)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := set.Render(specOf(t, someRequest), noPlan, allowing())
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error holds a secret: %v", err)
	}
	return manifests, err
}

// TestAllowedKinds have what their templates say, and the identity of the
// workload.
func TestAllowedKinds(t *testing.T) {
	identity := map[string]any{"app.kubernetes.io/managed-by": "k8s-runner", "agyn.dev/managed-by": "agents-orchestrator", "agyn.io/workload-id": id}
	for name, c := range map[string]struct {
		object string
		want   map[string]any
		patch  string
	}{
		"a ConfigMap": {configMap + "  labels: {agyn.io/templates: files, agyn.io/workload-id: other}\ndata: {a: b}\nimmutable: true\n", map[string]any{"data": map[string]any{"a": "b"}, "immutable": true}, ""},
		"a budget":    {"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: {{ .Name }}-x}\nspec: {maxUnavailable: 50%}\n", map[string]any{"spec": map[string]any{"maxUnavailable": "50%"}}, ""},
		"a resource of any fields": {
			thing + "spec: {a: [1, 1.5, x, true, null, {b: []}], c: {{ .Properties.colour }}}\nrules: {$ref: x}\ntype: kubernetes.io/service-account-token\n",
			map[string]any{
				"spec":  map[string]any{"a": []any{int64(1), 1.5, "x", true, nil, map[string]any{"b": []any{}}}, "c": "blue"},
				"rules": map[string]any{"$ref": "x"}, "type": "kubernetes.io/service-account-token",
			}, "",
		},
		"a directive that is data": {thing + "spec: {{ dict \"$patch\" \"delete\" }}\n", map[string]any{"spec": map[string]any{"$patch": "delete"}}, ""},
		"a patch of values that look like directives": {
			configMap + "data: {a: b}\n", map[string]any{"data": map[string]any{"a": "b", "$patch": "replace"}},
			"apiVersion: v1\nkind: ConfigMap\ndata:\n  {{ print \"$patch\" }}: replace\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var patches []string
			if c.patch != "" {
				patches = append(patches, c.patch)
			}
			manifests, err := renderKinds(t, c.object, patches...)
			if err != nil {
				t.Fatal(err)
			}
			if len(manifests.Owned) != 1 {
				t.Fatalf("the Pod owns %v", manifests.Owned)
			}
			got := maps.Clone(manifests.Owned[0].Object)
			metadata := map[string]any{"name": "workload-" + id + "-x", "namespace": "workloads", "labels": identity}
			if diff := cmp.Diff(metadata, got["metadata"]); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			for _, key := range []string{"apiVersion", "kind", "metadata"} {
				delete(got, key)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllowedKindsRefuse(t *testing.T) {
	const value = "(index (index .Containers 0).Env 0).Value"
	for name, c := range map[string]struct{ object, patch, where string }{
		"another kind":                 {object: "apiVersion: v1\nkind: Endpoints\n", where: "x.yaml:2: kind with its apiVersion, must be one of a.example/v1 Thing, "},
		"another version":              {object: "apiVersion: b.example/v2\nkind: Thing\n", where: "x.yaml:2: kind "},
		"a kind of a value":            {object: "apiVersion: v1\nkind: {{ " + value + " }}\n", where: "x.yaml:2: kind "},
		"a patch of another kind":      {object: thing, patch: "apiVersion: b.example/v2\nkind: Thing\n", where: "p/x.yaml:2: kind "},
		"a foreign name":               {object: strings.Replace(thing, "{{ .Name }}-x", "shared", 1), where: "x.yaml:4: metadata.name "},
		"a status":                     {object: thing + "status: {}\n", where: "x.yaml:5: status "},
		"a status of a Service":        {object: service + "status: {loadBalancer: {}}\n", where: "x.yaml:5: status "},
		"a status by a patch":          {object: thing, patch: "apiVersion: a.example/v1\nkind: Thing\nstatus: {a: b}\n", where: "p/x.yaml:3: status "},
		"an owner":                     {object: thing + "  ownerReferences: []\n", where: "x.yaml:5: metadata.ownerReferences "},
		"a finalizer":                  {object: configMap + "  finalizers: [a/b]\n", where: "x.yaml:5: metadata.finalizers "},
		"data that is not base64":      {object: configMap + "binaryData: {a: delete}\n", where: "x.yaml:5: binaryData.a must be base64, not this string"},
		"an unknown field":             {object: configMap + "dataa: {}\n", where: "x.yaml:5: dataa "},
		"a port that is none":          {object: service + "spec:\n  ports:\n  - {port: web}\n", where: "x.yaml:7: spec.ports[0].port "},
		"metadata of a resource":       {object: thing + "  lables: {}\n", where: "x.yaml:5: metadata.lables "},
		"labels of a resource":         {object: thing + "  labels: {a: 1}\n", where: "x.yaml:5: metadata.labels.a "},
		"what JSON does not have":      {object: thing + "spec:\n  a: [{b: .inf}]\n", where: "x.yaml:6: spec.a[0].b must be a number of JSON"},
		"what JSON has not, of a key":  {object: thing + "spec:\n  {{ " + value + " }}: .nan\n", where: "x.yaml:6: spec.(a printed key) must be a number of JSON"},
		"a directive for a resource":   {object: thing + "spec: {a: b}\n", patch: "apiVersion: a.example/v1\nkind: Thing\nspec:\n  $patch: replace\n", where: "p/x.yaml:4: spec.$patch is for Kubernetes' own kinds"},
		"a directive in its list":      {object: thing + "spec: {a: b}\n", patch: "apiVersion: a.example/v1\nkind: Thing\nspec:\n  a: [{$patch: replace}]\n", where: "p/x.yaml:4: spec.a[0].$patch is for Kubernetes' own kinds"},
		"a directive that is none":     {object: configMap, patch: "apiVersion: v1\nkind: ConfigMap\ndata:\n  $patch: remove\n", where: "p/x.yaml:4: $patch must be merge, replace or delete"},
		"a directive that a value is":  {object: configMap, patch: "apiVersion: v1\nkind: ConfigMap\ndata:\n  $patch: {{ print \"delete\" }}\n", where: "p/x.yaml:4: $patch must be merge, replace or delete"},
		"another directive":            {object: service, patch: "apiVersion: v1\nkind: Service\nspec:\n  $retainKeys: [ports]\n", where: "p/x.yaml:4: spec.$retainKeys is an unknown field"},
		"a directive of a value":       {object: service, patch: "apiVersion: v1\nkind: Service\nspec:\n  <<: {{ dict \"$patch\" \"delete\" }}\n", where: "p/x.yaml:4: spec.(a printed key) is an unknown field"},
		"two of one group":             {object: thing + "---\n" + strings.Replace(thing, "/v1", "/v2", 1), where: "x.yaml:6: a second Thing "},
		"a part of a patch, and where": {object: service, patch: "apiVersion: v1\nkind: Service\nspec:\n  ports:\n  - port: 80\n    name: 1\n", where: "p/x.yaml:6: spec.ports[0].name "},
	} {
		t.Run(name, func(t *testing.T) {
			var patches []string
			if c.patch != "" {
				patches = append(patches, c.patch)
			}
			if _, err := renderKinds(t, c.object, patches...); err == nil || !strings.HasPrefix(err.Error(), c.where) {
				t.Errorf("the error does not start with %q: %v", c.where, err)
			}
		})
	}
}

// TestKindsAreOfGroups: one name and kind in two groups are two objects.
func TestKindsAreOfGroups(t *testing.T) {
	manifests, err := renderKinds(t, thing+"---\n"+strings.Replace(thing, "a.example", "b.example", 1))
	if err != nil || len(manifests.Owned) != 2 {
		t.Errorf("it makes %v (%v)", manifests, err)
	}
}

// TestWhereOfAllowedKinds: the file and line of what a patch, or the file, set.
func TestWhereOfAllowedKinds(t *testing.T) {
	for name, c := range map[string]struct {
		object, patch string
		path          []any
		want          string
	}{
		"of the file":          {thing + "spec:\n  a: [{b: c}]\n", "apiVersion: a.example/v1\nkind: Thing\nspec: {d: e}\n", []any{"spec", "a", 0, "b"}, "x.yaml:6"},
		"of the patch":         {thing + "spec:\n  a: [{b: c}]\n", "apiVersion: a.example/v1\nkind: Thing\nspec:\n  a:\n  - {b: d}\n", []any{"spec", "a", 0, "b"}, "p/x.yaml:5"},
		"a port of the file":   {service + "spec:\n  ports:\n  - {port: 1}\n  - port: 2\n    name: a\n", "apiVersion: v1\nkind: Service\nspec:\n  ports:\n  - {port: 2, protocol: UDP}\n", []any{"spec", "ports", 1, "name"}, "x.yaml:9"},
		"a port of the patch":  {service + "spec:\n  ports:\n  - {port: 1}\n  - port: 2\n    name: a\n", "apiVersion: v1\nkind: Service\nspec:\n  ports:\n  - {port: 2, protocol: UDP}\n", []any{"spec", "ports", 1, "protocol"}, "p/x.yaml:5"},
		"the key of that port": {service + "spec:\n  ports:\n  - {port: 1}\n  - port: 2\n    name: a\n", "apiVersion: v1\nkind: Service\nspec:\n  ports:\n  - {port: 2, protocol: UDP}\n", []any{"spec", "ports", 1, "port"}, "x.yaml:8"},
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := renderKinds(t, c.object, c.patch)
			if err != nil {
				t.Fatal(err)
			}
			if got := manifests.Where(manifests.Owned[0], c.path...); got != c.want {
				t.Errorf("it is %s, not %s", got, c.want)
			}
		})
	}
}

// TestMissingConfigMaps: a Pod that refers to a ConfigMap of the workload would
// wait for it for ever.
func TestMissingConfigMaps(t *testing.T) {
	for line, where := range map[string]string{
		"    envFrom:\n    - configMapRef: {name: {{ .Name }}-y}\n":                                "pod.yaml:10: spec.containers[0].envFrom[0].configMapRef.name ",
		"    env:\n    - {name: A, valueFrom: {configMapKeyRef: {name: {{ .Name }}-y, key: a}}}\n": "pod.yaml:10: spec.containers[0].env[0].valueFrom.configMapKeyRef.name ",
		"  volumes:\n  - {name: a, configMap: {name: {{ .Name }}-y}}\n":                            "pod.yaml:10: spec.volumes[0].configMap.name ",
		"  volumes:\n  - {name: a, projected: {sources: [{configMap: {name: {{ .Name }}-y}}]}}\n":  "pod.yaml:10: spec.volumes[0].projected.sources[0].configMap.name ",
		"  volumes:\n  - {name: a, configMap: {name: {{ .Name }}-x}}\n":                            "",
		"  volumes:\n  - {name: a, configMap: {name: {{ .Name }}-y, optional: true}}\n":            "",
		"  volumes:\n  - {name: a, configMap: {name: shared}}\n":                                   "",
		"  volumes:\n  - {name: a, secret: {secretName: {{ .Name }}-x}}\n":                         "pod.yaml:10: spec.volumes[0].secret.secretName ",
	} {
		set := compile(t, map[string]string{"pod.yaml": podWith(line), "x.yaml": configMap})
		_, err := set.Render(specOf(t, someRequest), noPlan, allowing())
		if (err == nil) != (where == "") || err != nil && !strings.HasPrefix(err.Error(), where) {
			t.Errorf("of %s the error is %v", line, err)
		}
	}
}
