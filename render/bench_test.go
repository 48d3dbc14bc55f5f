package render_test

import (
	"fmt"
	"testing"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// BenchmarkRender renders a Pod of 20 containers with 30 variables each.
func BenchmarkRender(b *testing.B) {
	files, err := templates.Shipped()
	if err != nil {
		b.Fatal(err)
	}
	set, err := render.Compile(files)
	if err != nil {
		b.Fatal(err)
	}
	spec := bigSpec(20, 30)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := set.Render(spec, noPlan, settings); err != nil {
			b.Fatal(err)
		}
	}
}

func bigSpec(containers, variables int) *workload.Spec {
	container := func(name string) workload.Container {
		c := workload.Container{Name: name, Image: "registry.example.com/team/image:1", Args: []string{"run", "--port=8080"}}
		for i := range variables {
			c.Env = append(c.Env, workload.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: fmt.Sprintf("value number %d", i)})
		}
		c.Mounts = []workload.Mount{{Volume: "work", Path: "/work"}}
		return c
	}
	spec := &workload.Spec{
		ID:      "00000000-0000-4000-8000-000000000001",
		Main:    container("main"),
		Volumes: []workload.Volume{{Name: "work", Kind: workload.Ephemeral}},
		Digest:  "0",
	}
	for i := range containers - 1 {
		spec.Sidecars = append(spec.Sidecars, container(fmt.Sprintf("sidecar-%d", i+1)))
	}
	return spec
}
