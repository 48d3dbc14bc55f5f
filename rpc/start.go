package rpc

import (
	"context"
	"fmt"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// StartWorkload renders the request and creates the Pod. From its
// answer on, reads show it.
func (s *Server) StartWorkload(ctx context.Context, req *runnerv1.StartWorkloadRequest) (*runnerv1.StartWorkloadResponse, error) {
	spec, manifests, err := s.renderer.Render(req)
	if err != nil {
		return nil, err
	}
	if err := unsupported(spec); err != nil {
		return nil, err
	}
	pod, err := s.writer.Start(ctx, manifests.Pod)
	if err != nil {
		return nil, err
	}
	s.workloads.Wrote(pod)
	return started(spec), nil
}

func started(spec *workload.Spec) *runnerv1.StartWorkloadResponse {
	pod := workload.PodName(spec.ID)
	containers := &runnerv1.WorkloadContainers{Main: pod}
	sidecar := func(name string) {
		containers.Sidecars = append(containers.Sidecars, &runnerv1.SidecarInstance{
			Name: name, Id: pod + ":" + name, Status: "starting",
		})
	}
	for _, c := range spec.Sidecars {
		sidecar(c.Name)
	}
	for _, c := range spec.Inits {
		if c.Restarts {
			sidecar(c.Name)
		}
	}
	return &runnerv1.StartWorkloadResponse{
		Id:         spec.ID,
		Containers: containers,
		Status:     runnerv1.WorkloadStatus_WORKLOAD_STATUS_STARTING,
	}
}

// unsupported refuses the parts of a request that are not rendered yet, rather
// than starting something less than was asked for.
func unsupported(spec *workload.Spec) error {
	var faults []workload.Violation
	refuse := func(present bool, field string) {
		if present {
			faults = append(faults, workload.Violation{
				Field: field, Token: "not_supported", Message: "this version of the runner does not support it",
			})
		}
	}
	refuse(spec.Flavor != "", "flavor")
	refuse(len(spec.Capabilities) > 0, "capabilities")
	refuse(len(spec.InlineFiles) > 0, "inline_files")
	refuse(len(spec.PullCredentials) > 0, "image_pull_credentials")
	for i, v := range spec.Volumes {
		refuse(v.Kind == workload.Named, fmt.Sprintf("volumes[%d].kind", i))
	}
	for field, c := range spec.Containers() {
		refuse(len(c.Capabilities) > 0, field+".required_capabilities")
		refuse(len(c.InlineFiles) > 0, field+".inline_file_mounts")
		refuse(c.Resources != nil, field+".resources")
	}
	return workload.Invalid(faults)
}
