package rpc

import (
	"context"
	"errors"
	"maps"
	"slices"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// ListVolumes lists the claims that carry a volume_key label, sorted by name.
func (s *Server) ListVolumes(context.Context, *runnerv1.ListVolumesRequest) (*runnerv1.ListVolumesResponse, error) {
	out := &runnerv1.ListVolumesResponse{}
	keys := s.volumes.Keys()
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		out.Volumes = append(out.Volumes, &runnerv1.VolumeListItem{InstanceId: name, VolumeKey: keys[name]})
	}
	return out, nil
}

// ListWorkloadsByVolume returns the ids, sorted, of the workloads whose Pods
// mount a claim, whatever state they are in.
func (s *Server) ListWorkloadsByVolume(_ context.Context, req *runnerv1.ListWorkloadsByVolumeRequest) (*runnerv1.ListWorkloadsByVolumeResponse, error) {
	if err := needVolumeName(req.GetVolumeName()); err != nil {
		return nil, err
	}
	out := &runnerv1.ListWorkloadsByVolumeResponse{}
	for _, state := range s.sorted(nil) {
		if slices.Contains(state.Claims, req.GetVolumeName()) {
			out.TargetIds = append(out.TargetIds, state.ID)
		}
	}
	return out, nil
}

// RemoveVolume deletes a claim. Kubernetes keeps the data as long as a Pod uses
// it. An absent claim is no error.
func (s *Server) RemoveVolume(ctx context.Context, req *runnerv1.RemoveVolumeRequest) (*runnerv1.RemoveVolumeResponse, error) {
	if err := needVolumeName(req.GetVolumeName()); err != nil {
		return nil, err
	}
	if err := s.deleteClaim(ctx, req.GetVolumeName(), req.GetForce()); err != nil {
		return nil, err
	}
	return &runnerv1.RemoveVolumeResponse{}, nil
}

// deleteClaim returns once reads no longer show the claim. An absent one is no
// error.
func (s *Server) deleteClaim(ctx context.Context, name string, force bool) error {
	err := s.volumes.Deleting(ctx, name, true, func() error { return s.applier.DeleteClaim(ctx, name, force) })
	var domain *workload.Error
	if errors.As(err, &domain) && domain.Kind == workload.NotFound {
		return nil
	}
	return err
}

func needVolumeName(name string) error {
	if name != "" {
		return nil
	}
	//nolint:gosec // a token is the name of an error
	return workload.Invalid([]workload.Violation{{Field: "volume_name", Token: "volume_name_required", Message: "name the claim"}})
}
