package rpc

import (
	"context"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// Archives puts files into containers.
type Archives interface {
	// Put extracts a tar archive below path.
	Put(ctx context.Context, target workload.Target, path string, archive []byte) error
}

// PutArchive extracts a tar archive below a path of the main container, which runs.
func (s *Server) PutArchive(ctx context.Context, req *runnerv1.PutArchiveRequest) (*runnerv1.PutArchiveResponse, error) {
	if s.archives == nil {
		return s.UnimplementedRunnerServiceServer.PutArchive(ctx, req)
	}
	if size := int64(len(req.GetTarPayload())); size > s.maxArchive {
		return nil, workload.Errorf(workload.ResourceExhausted, "archive_too_large",
			"the archive has %d bytes, and the limit is %d (archive.max_size)", size, s.maxArchive)
	}
	state, err := s.find(req.GetWorkloadId())
	if err != nil {
		return nil, err
	}
	main := state.Main()
	if main == nil || main.Status != workload.Running {
		return nil, workload.Errorf(workload.FailedPrecondition, "container_not_running",
			"nothing can be unpacked in the workload %s, whose main container does not run", state.ID)
	}
	target := workload.Target{ID: state.ID, UID: state.UID, Container: main.Name}
	if err := s.archives.Put(ctx, target, req.GetPath(), req.GetTarPayload()); err != nil {
		return nil, err
	}
	return &runnerv1.PutArchiveResponse{}, nil
}
