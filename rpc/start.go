package rpc

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/workload"
)

// StartWorkload renders the request and creates the Pod with all that goes with
// it. From its answer on, reads show it.
func (s *Server) StartWorkload(ctx context.Context, req *runnerv1.StartWorkloadRequest) (*runnerv1.StartWorkloadResponse, error) {
	spec, manifests, err := s.render(ctx, req)
	if err != nil {
		return nil, err
	}
	written, err := s.applier.Start(ctx, manifests.Pod, manifests.Owned, manifests.Claims)
	if err != nil {
		return nil, err
	}
	s.workloads.Wrote(written[0])
	for _, claim := range written[1:] {
		s.volumes.Wrote(claim)
	}
	return started(spec.ID, manifests.Pod), nil
}

// phaseRender is the first phase of a start; the others are of who writes.
const phaseRender = "render"

func (s *Server) render(ctx context.Context, req *runnerv1.StartWorkloadRequest) (*workload.Spec, *render.Manifests, error) {
	if s.starts == nil {
		return s.renderer.Render(req)
	}
	_, end := s.starts.Phase(ctx, phaseRender)
	spec, manifests, err := s.renderer.Render(req)
	end(err)
	if err != nil {
		s.starts.Started(false, err)
	}
	return spec, manifests, err
}

// started answers for the Pod as it was rendered: its sidecars are all its
// containers but the first, wherever they come from, and native ones.
func started(id string, pod *unstructured.Unstructured) *runnerv1.StartWorkloadResponse {
	name := workload.PodName(id)
	containers := &runnerv1.WorkloadContainers{Main: name}
	sidecar := func(container map[string]any) {
		side, _ := container["name"].(string)
		containers.Sidecars = append(containers.Sidecars, &runnerv1.SidecarInstance{
			Name: side, Id: name + ":" + side, Status: "starting",
		})
	}
	for i, c := range containersOf(pod, "containers") {
		if i > 0 {
			sidecar(c)
		}
	}
	for _, c := range containersOf(pod, "initContainers") {
		if c["restartPolicy"] == "Always" {
			sidecar(c)
		}
	}
	return &runnerv1.StartWorkloadResponse{
		Id:         id,
		Containers: containers,
		Status:     runnerv1.WorkloadStatus_WORKLOAD_STATUS_STARTING,
	}
}

// containersOf returns one of the Pod's lists of containers.
func containersOf(pod *unstructured.Unstructured, list string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec", list)
	items, _ := value.([]any)
	out := make([]map[string]any, len(items))
	for i, item := range items {
		out[i], _ = item.(map[string]any)
	}
	return out
}
