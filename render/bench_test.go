package render_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// BenchmarkRender renders Pods of up to 40 containers with 30 variables each. The
// median of a render, and what of it falls to a container, must not grow faster
// than the request.
func BenchmarkRender(b *testing.B) {
	files, err := templates.Shipped()
	if err != nil {
		b.Fatal(err)
	}
	set, err := render.Compile(files)
	if err != nil {
		b.Fatal(err)
	}
	for _, containers := range []int{1, 5, 10, 20, 40} {
		b.Run(fmt.Sprintf("containers=%d", containers), func(b *testing.B) {
			spec := bigSpec(containers, 30)
			took := make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				if _, err := set.Render(spec, noPlan, settings); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			median := float64(took[len(took)/2].Nanoseconds())
			b.ReportMetric(median/1e6, "p50-ms")
			b.ReportMetric(median/1e3/float64(containers), "p50-µs/container")
		})
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
