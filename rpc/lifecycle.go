package rpc

import (
	"context"
	"time"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// StopWorkload deletes the Pod gracefully.
func (s *Server) StopWorkload(ctx context.Context, req *runnerv1.StopWorkloadRequest) (*runnerv1.StopWorkloadResponse, error) {
	var grace *int64
	if seconds := int64(req.GetTimeoutSec()); seconds > 0 {
		grace = &seconds
	}
	if err := s.deletePod(ctx, req.GetWorkloadId(), grace); err != nil {
		return nil, err
	}
	return &runnerv1.StopWorkloadResponse{}, nil
}

// RemoveWorkload deletes the Pod, at once if forced, and the claims that it
// mounts if asked.
func (s *Server) RemoveWorkload(ctx context.Context, req *runnerv1.RemoveWorkloadRequest) (*runnerv1.RemoveWorkloadResponse, error) {
	var grace *int64
	if req.GetForce() {
		grace = new(int64)
	}
	remove := s.deletePod
	if req.GetRemoveVolumes() {
		remove = s.deletePodAndClaims
	}
	if err := remove(ctx, req.GetWorkloadId(), grace); err != nil {
		return nil, err
	}
	return &runnerv1.RemoveWorkloadResponse{}, nil
}

func (s *Server) deletePod(ctx context.Context, ref string, grace *int64) error {
	id, uid, err := s.target(ref)
	if err != nil {
		return err
	}
	return s.deletePodOf(ctx, id, uid, grace)
}

// target returns the id that ref means, and the UID of its Pod as far as reads
// show one; for those that they do not show yet, a write asks the cluster.
func (s *Server) target(ref string) (id, uid string, err error) {
	id, ok := workload.ParseRef(ref)
	if !ok {
		return "", "", workload.NoSuchWorkload(ref)
	}
	if state, ok := s.workloads.Get(id); ok {
		uid = state.UID
	}
	return id, uid, nil
}

// deletePodAndClaims deletes the claims first: they are found through the Pod, so
// that a call that failed halfway can be made again. Kubernetes keeps them until
// the Pod is gone.
func (s *Server) deletePodAndClaims(ctx context.Context, ref string, grace *int64) error {
	id, ok := workload.ParseRef(ref)
	if !ok {
		return workload.NoSuchWorkload(ref)
	}
	return s.workloads.Deleting(ctx, workload.PodName(id), !forced(grace), func() error {
		uid, claims, err := s.applier.Mounted(ctx, id)
		if err != nil {
			return err
		}
		for _, name := range claims {
			if err := s.deleteClaim(ctx, name, forced(grace)); err != nil {
				return err
			}
		}
		return s.applier.Delete(ctx, id, uid, grace)
	})
}

func (s *Server) deletePodOf(ctx context.Context, id, uid string, grace *int64) error {
	return s.workloads.Deleting(ctx, workload.PodName(id), !forced(grace), func() error {
		return s.applier.Delete(ctx, id, uid, grace)
	})
}

func forced(grace *int64) bool { return grace != nil && *grace == 0 }

// TouchWorkload notes that the workload is in use.
func (s *Server) TouchWorkload(ctx context.Context, req *runnerv1.TouchWorkloadRequest) (*runnerv1.TouchWorkloadResponse, error) {
	id, uid, err := s.target(req.GetWorkloadId())
	if err != nil {
		return nil, err
	}
	if err := s.applier.Touch(ctx, id, uid, time.Now()); err != nil {
		return nil, err
	}
	return &runnerv1.TouchWorkloadResponse{}, nil
}
