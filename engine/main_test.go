package engine_test

import (
	"maps"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/templates"
)

// offered is a catalog with a bit of everything.
const offered = `
flavors:
- {name: small, default: true, resources: {requestsCpu: 10m, limitsMemory: 1Gi}, sidecarResources: {requestsCpu: 5m}}
- {name: gpu, devices: {example.com/gpu: "1"}, nodeSelector: {pool: gpu}, tolerations: [{key: gpu, operator: Exists}], runtimeClass: gvisor, priorityClass: high, supplementalGroups: [44]}
storageClasses:
- {name: fast, storageClassName: ssd, default: true}
- {name: slow}
capabilities: [docker, compute-resources]
`

func shipped(t testing.TB) *engine.Engine {
	t.Helper()
	return engineOf(t, "")
}

// engineOf returns an engine of the shipped templates, or of those of an archive
// in txtar's form.
func engineOf(t testing.TB, archive string) *engine.Engine {
	t.Helper()
	files, err := templates.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	if archive != "" {
		files = map[string]string{}
		for _, f := range txtar.Parse([]byte(archive)).Files {
			files[f.Name] = string(f.Data)
		}
	}
	c, faults := catalog.Parse([]byte(offered))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	settings := config.Default()
	settings.Kube.Namespace = "workloads"
	settings.Capabilities.Implementations = map[string]string{catalog.Docker: catalog.DockerRootless}
	settings.NetworkPolicy.Enabled = true
	e, err := engine.New(engine.Options{Templates: maps.Clone(files), Catalog: c, Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
