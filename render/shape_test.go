package render

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestShapeAgreesWithTheStrictDecoder changes each part of Pods to what fits
// there and what does not, and compares with the decoder of the API server.
func TestShapeAgreesWithTheStrictDecoder(t *testing.T) {
	pod := shapes{}.of(reflect.TypeFor[corev1.Pod]())
	pods, err := filepath.Glob("../testdata/cases/*/expected.yaml")
	if err != nil || len(pods) == 0 {
		t.Fatalf("no Pods (%v)", err)
	}
	compared, fitting := 0, 0
	compare := func(where string, root map[string]any) {
		strict := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(root, &corev1.Pod{}, true) == nil
		faults := pod.misfits(root)
		if strict != (len(faults) == 0) {
			t.Errorf("%s: the strict decoder accepts it: %v, the shape finds %v", where, strict, faults)
		}
		if compared++; strict {
			fitting++
		}
	}
	for _, file := range append(pods, "testdata/full-pod.yaml") {
		root := readPod(t, file)
		compare(file, root)
		eachPart(root, func(path fieldPath, part any, set func(any)) {
			for _, other := range []any{nil, "x", "", "1", "100m", "2001-01-01T00:00:00Z", true, int64(1), int64(-1), 1.5, 2.0, []any{}, []any{"x"}, []any{int64(1)}, []any{map[string]any{}}, map[string]any{}, map[string]any{"x": "y"}, map[string]any{"name": "y"}} {
				set(other)
				compare(fmt.Sprintf("%s %s = %#v", filepath.Base(filepath.Dir(file)), path, other), root)
			}
			set(part)
		})
	}
	if compared < 1000 || fitting < 100 || fitting > compared-100 {
		t.Errorf("%d comparisons, of which %d fit, prove little", compared, fitting)
	}
}

func readPod(t *testing.T, file string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	plain, err := new(budget).plain(wholeNumbers(out))
	if err != nil {
		t.Fatal(err)
	}
	return plain.(map[string]any)
}

// wholeNumbers makes numbers of v what the renderer's decoder makes of them.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			v[k] = wholeNumbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = wholeNumbers(item)
		}
	case float64:
		return int64(v)
	}
	return v
}

// eachPart visits all parts of v below its top.
func eachPart(v any, visit func(path fieldPath, part any, set func(any))) {
	var walk func(path fieldPath, v any)
	walk = func(path fieldPath, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, item := range v {
				visit(path.then(k), item, func(other any) { v[k] = other })
				walk(path.then(k), item)
			}
		case []any:
			for i, item := range v {
				visit(path.then(i), item, func(other any) { v[i] = other })
				walk(path.then(i), item)
			}
		}
	}
	walk(nil, v)
}

func TestNumbersBeyond32Bits(t *testing.T) {
	priority := func(n any) map[string]any { return map[string]any{"spec": map[string]any{"priority": n}} }
	pod := shapes{}.of(reflect.TypeFor[corev1.Pod]())
	for _, fits := range []any{int64(1<<31 - 1), int64(-1 << 31), 2147483647.0} {
		if faults := pod.misfits(priority(fits)); len(faults) > 0 {
			t.Errorf("%v: %v", fits, faults)
		}
	}
	for _, misfit := range []any{int64(1 << 31), int64(-1<<31 - 1), 1e10, 1e300} {
		if faults := pod.misfits(priority(misfit)); len(faults) != 1 || faults[0].path.String() != "spec.priority" {
			t.Errorf("%v: %v", misfit, faults)
		}
	}
}

// TestShapesOfKubernetes: every type of every kind that an operator can allow is
// one of which a shape knows what fits.
func TestShapesOfKubernetes(t *testing.T) {
	known := []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Slice, reflect.Map, reflect.Struct}
	all := newKinds()
	for _, k := range append(builtIn(), configMapKind, "v1 Service", "networking.k8s.io/v1 Ingress", "policy/v1 PodDisruptionBudget",
		"resource.k8s.io/v1 ResourceClaim", "resource.k8s.io/v1 ResourceClaimTemplate", "scheduling.k8s.io/v1beta1 PodGroup", "scheduling.k8s.io/v1beta1 Workload") {
		if all.shapeOf(k).isCustom() {
			t.Errorf("%s is none of Kubernetes'", k)
		}
	}
	for of, s := range all.types {
		if s.opaque == nil && !slices.Contains(known, s.kind) {
			t.Errorf("nothing fits %s", of)
		}
	}
}
