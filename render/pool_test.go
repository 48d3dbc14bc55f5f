package render

import (
	"reflect"
	"testing"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/workload"
)

// TestExecutorsForget looks into what goes back to the pool: it must hold no
// value of a request, whether the render succeeded or not.
func TestExecutorsForget(t *testing.T) {
	const start = "apiVersion: v1\nkind: Pod\nspec:\n  containers: [{name: main, args: {{ (index .Containers 0).Args }}}]\n"
	for name, text := range map[string]string{
		"a success":                start,
		"an error of the template": start + "{{ $x := include \"nothing\" . }}",
		"an error of the YAML":     start + "a: b: c",
		"an error of the Pod":      start + "a: b",
		"an error of the budget":   start + "{{ range 1000000000 }}{{ end }}",
		"an error deep in values":  start + "{{ $l := list (index .Containers 0).Args }}{{ range 100 }}{{ $l = list $l }}{{ end }}{{ $l }}",
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Compile(map[string]string{"pod.yaml": text})
			if err != nil {
				t.Fatal(err)
			}
			var pooled []*executor
			made := set.executors.New
			set.executors.New = func() any {
				e := made().(*executor)
				pooled = append(pooled, e)
				return e
			}
			spec := &workload.Spec{Main: workload.Container{Name: "main", Args: []string{"s3cr3t-value"}}}
			for range 3 {
				_, err = set.Render(spec, &catalog.Plan{}, Settings{Namespace: "workloads"})
			}
			if success := name == "a success"; success != (err == nil) {
				t.Fatalf("the error is %v", err)
			}
			for _, e := range pooled {
				for i, slot := range e.slots[:cap(e.slots)] {
					if slot != nil {
						t.Errorf("slot %d still holds %v", i, slot)
					}
				}
				if !reflect.DeepEqual(e.budget, budget{}) || len(e.slots) != 0 {
					t.Errorf("the next render would start with %+v and %d slots", e.budget, len(e.slots))
				}
			}
		})
	}
}
