package requesttest

import (
	"testing"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// Renderable returns Rich without what no template renders yet.
func Renderable(t testing.TB) *runnerv1.StartWorkloadRequest {
	t.Helper()
	req := Rich(t)
	req.Flavor, req.Capabilities, req.InlineFiles, req.ImagePullCredentials = "", nil, nil, nil
	for _, v := range req.GetVolumes() {
		v.Kind = runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL
	}
	all := append([]*runnerv1.ContainerSpec{req.GetMain()}, req.GetSidecars()...)
	for _, c := range append(all, req.GetInitContainers()...) {
		c.RequiredCapabilities, c.InlineFileMounts, c.Resources = nil, nil, nil
	}
	return req
}
