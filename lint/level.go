package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/agynio/k8s-runner/workload"
)

// LevelOf returns the strictest Pod Security level that admits pod: restricted,
// baseline or privileged, by the rules of the Kubernetes that this is built
// with.
func LevelOf(pod *unstructured.Unstructured) (api.Level, error) {
	j, err := newJudge()
	if err != nil {
		return "", err
	}
	return j.levelOf(pod.Object)
}

// weaker returns the level of the two that admits more.
func weaker(a, b api.Level) api.Level {
	order := []api.Level{api.LevelPrivileged, api.LevelBaseline, api.LevelRestricted}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}

type judge struct{ evaluator policy.Evaluator }

func newJudge() (*judge, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, fmt.Errorf("preparing the Pod Security levels: %w", err)
	}
	return &judge{evaluator}, nil
}

func (j *judge) levelOf(pod map[string]any) (api.Level, error) {
	for _, level := range [...]api.Level{api.LevelRestricted, api.LevelBaseline} {
		results, err := j.check(pod, level)
		if err != nil {
			return "", err
		}
		if policy.AggregateCheckResults(results).Allowed {
			return level, nil
		}
	}
	return api.LevelPrivileged, nil
}

// check returns a result for each rule of level, always in the same order.
func (j *judge) check(pod map[string]any, level api.Level) ([]policy.CheckResult, error) {
	var typed corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &typed); err != nil {
		return nil, fmt.Errorf("reading a Pod: %w", err)
	}
	return j.evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &typed.ObjectMeta, &typed.Spec), nil
}

// excess is a field that a level does not admit.
type excess struct {
	path  []any
	level api.Level
	// rule is the one broken, in the words of Kubernetes.
	rule string
}

func (e excess) String() string {
	return fmt.Sprintf("%s exceeds the Pod Security level %s: %s", pathText(e.path), e.level, e.rule)
}

func pathText(path []any) string {
	var out strings.Builder
	for _, step := range path {
		if i, isIndex := step.(int); isIndex {
			fmt.Fprintf(&out, "[%d]", i)
			continue
		}
		fmt.Fprintf(&out, ".%s", step)
	}
	return strings.TrimPrefix(out.String(), ".")
}

// excesses finds the fields of pod, a valid one, for which it needs more than
// level. Kubernetes names rules and containers only.
func (j *judge) excesses(pod map[string]any, level api.Level) []excess {
	results, _ := j.check(pod, level)
	bare, _ := j.check(bareest(), level)
	var out []excess
	for i, r := range results {
		if r.Allowed {
			continue
		}
		breaks := func(pod map[string]any) bool {
			alone, err := j.check(pod, level)
			return err == nil && !alone[i].Allowed
		}
		paths := forbidden(pod, breaks)
		if !bare[i].Allowed {
			paths = lacking(pod, breaks)
		}
		if len(paths) == 0 {
			paths = [][]any{{"spec"}}
		}
		for _, path := range paths {
			out = append(out, excess{path, level, r.ForbiddenReason})
		}
	}
	return out
}

// bareest is the Pod that breaks only rules that want something to be there.
func bareest() map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{}}}}
}

// forbidden finds the values that break a rule alone.
func forbidden(pod map[string]any, breaks func(map[string]any) bool) [][]any {
	var paths [][]any
	walk(pod, nil, func(path []any, value any) {
		if !breaks(alone(path, value)) {
			return
		}
		// An entry without its other fields can break it as well, such as a
		// sysctl without a name: then all of the entry is meant.
		if entry := path[:len(path)-1]; isIndex(entry) && breaks(alone(entry, map[string]any{})) {
			path = entry
		}
		if len(paths) == 0 || !slices.Equal(paths[len(paths)-1], path) {
			paths = append(paths, slices.Clone(path))
		}
	})
	return paths
}

func isIndex(path []any) bool {
	if len(path) == 0 {
		return false
	}
	_, is := path[len(path)-1].(int)
	return is
}

// alone returns an object that has nothing but value, at path.
func alone(path []any, value any) map[string]any {
	for _, step := range slices.Backward(path[1:]) {
		if name, isName := step.(string); isName {
			value = map[string]any{name: value}
		} else {
			value = []any{value}
		}
	}
	name, _ := path[0].(string) // an object is a map
	return map[string]any{name: value}
}

// walk visits all values that hold no others, in the order of their names.
func walk(value any, path []any, visit func([]any, any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], append(path, name), visit)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, item := range v {
			walk(item, append(path, i), visit)
		}
		if len(v) > 0 {
			return
		}
	}
	visit(path, value)
}

// lacking finds the containers that break a rule alone: they do not have what
// it wants.
func lacking(pod map[string]any, breaks func(map[string]any) bool) [][]any {
	var paths [][]any
	for _, list := range [...]string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(pod, "spec", list)
		for i, c := range containers {
			alone := runtime.DeepCopyJSON(pod)
			spec, _ := alone["spec"].(map[string]any)
			delete(spec, "initContainers")
			spec["containers"] = []any{c}
			if breaks(alone) {
				paths = append(paths, []any{"spec", list, i, "securityContext"})
			}
		}
	}
	return paths
}

// admitted is a Linux capability that every level admits.
const admitted = "NET_BIND_SERVICE"

// withoutRequested returns a copy of pod in which the Linux capabilities that
// spec asks for count for nothing.
func withoutRequested(pod *unstructured.Unstructured, spec *workload.Spec) map[string]any {
	requested := map[string][]string{}
	for _, c := range spec.Containers() {
		requested[c.Name] = c.Capabilities
	}
	out := runtime.DeepCopyJSON(pod.Object)
	podSpec, _ := out["spec"].(map[string]any)
	for _, list := range [...]string{"initContainers", "containers"} {
		containers, _ := podSpec[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			name, _ := container["name"].(string)
			context, _ := container["securityContext"].(map[string]any)
			capabilities, _ := context["capabilities"].(map[string]any)
			added, _ := capabilities["add"].([]any)
			for i, capability := range added {
				if text, _ := capability.(string); slices.Contains(requested[name], text) {
					added[i] = admitted
				}
			}
		}
	}
	return out
}
