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

// RemoveWorkload deletes the Pod, at once if forced.
func (s *Server) RemoveWorkload(ctx context.Context, req *runnerv1.RemoveWorkloadRequest) (*runnerv1.RemoveWorkloadResponse, error) {
	var grace *int64
	if req.GetForce() {
		grace = new(int64)
	}
	if err := s.deletePod(ctx, req.GetWorkloadId(), grace); err != nil {
		return nil, err
	}
	return &runnerv1.RemoveWorkloadResponse{}, nil
}

func (s *Server) deletePod(ctx context.Context, ref string, grace *int64) error {
	id, ok := workload.ParseRef(ref)
	if !ok {
		return workload.NoSuchWorkload(ref)
	}
	if err := s.writer.Delete(ctx, id, grace); err != nil {
		return err
	}
	forced := grace != nil && *grace == 0
	s.workloads.AwaitDeleted(ctx, id, !forced)
	return nil
}

// TouchWorkload notes that the workload is in use.
func (s *Server) TouchWorkload(ctx context.Context, req *runnerv1.TouchWorkloadRequest) (*runnerv1.TouchWorkloadResponse, error) {
	state, err := s.find(req.GetWorkloadId())
	if err != nil {
		return nil, err
	}
	if err := s.writer.Touch(ctx, state.ID, state.UID, time.Now()); err != nil {
		return nil, err
	}
	return &runnerv1.TouchWorkloadResponse{}, nil
}
