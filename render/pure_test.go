package render_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/workload"
)

// TestRenderIsPure renders two requests a hundred times at once: each gives the
// same bytes every time, and nothing of the other.
func TestRenderIsPure(t *testing.T) {
	sets := map[string]*render.Set{"shipped": shipped(t)}
	for name, files := range idioms(t) {
		delete(files, "spec.yaml")
		sets[name] = compile(t, files)
	}
	rich, err := request.Parse(requesttest.Renderable(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range sets {
		spec := rich
		if name != "shipped" {
			spec = specOf(t, someRequest) // the idioms are for this one
		}
		other := specOf(t, `{workload_id: 00000000-0000-4000-8000-0000000000bb, main: {image: other, cmd: [other]}, additional_properties: {colour: red}}`)
		want := stream(t, set, spec)
		var wait sync.WaitGroup
		for i := range 100 {
			wait.Go(func() {
				if i%3 == 0 {
					_, _ = set.Render(other, noPlan, render.Settings{Namespace: "others"})
					return
				}
				if got := stream(t, set, spec); !bytes.Equal(got, want) {
					t.Errorf("%s renders as\n%s\nand then as\n%s", name, want, got)
				}
			})
		}
		wait.Wait()
	}
}

func stream(t *testing.T, set *render.Set, spec *workload.Spec) []byte {
	manifests, err := set.Render(spec, noPlan, settings)
	if err != nil {
		t.Error(err)
		return nil
	}
	out, err := golden.Stream(manifests.All())
	if err != nil {
		t.Error(err)
	}
	return out
}

// TestTextOfPointersIsPure prints structs with pointers in them as text, which
// fmt does by their addresses.
func TestTextOfPointersIsPure(t *testing.T) {
	for _, call := range []string{
		`printf "%v" $all`, `printf "%d" $all`, `printf "%#v" $all`, `printf "%x" $all`, `printf "%T" $all`, `printf "%v" $all`, `print $ $all`, `println $all`,
		`toString $all`, `join "," $all`, `html $all`, `js $all`, `urlquery $all`, `sortAlpha $all | join ""`, `toJson $all`,
		`printf "%v" $one`, `printf "%d" $one`, `printf "%T" $one`, `printf "%d %d" $one`, `printf "%d" $one $one`, `toString $one`, `join "," (list $one)`, `print $one`,
	} {
		t.Run(call, func(t *testing.T) {
			set := compile(t, filesOf(podWith(`{{- $all := .Containers }}{{ $one := (index $all 0).ReadOnlyRoot }}
  hostname: {{ `+call+` | quote }}
`)))
			seen := map[string]bool{}
			var keep []any // so that no address comes twice
			for range 3 {
				spec := specOf(t, `{workload_id: `+id+`, main: {image: a, additional_properties: {read_only_root_filesystem: "true"}}}`)
				keep = append(keep, spec)
				seen[string(stream(t, set, spec))] = true
			}
			if len(seen) != 1 || len(keep) != 3 {
				t.Errorf("the same request renders in %d ways: %v", len(seen), seen)
			}
		})
	}
}
