// Package rpc serves the RunnerService. Its handlers are thin: they read the
// request, call what does the work through the small interfaces below, and
// write the answer. errors.go alone turns errors into gRPC codes.
package rpc

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/workload"
)

// Renderer makes the manifests of a request.
type Renderer interface {
	Render(req *runnerv1.StartWorkloadRequest) (*workload.Spec, *render.Manifests, error)
}

// Writer changes the cluster.
type Writer interface {
	// Start creates a Pod and returns it as the cluster then has it.
	Start(ctx context.Context, pod *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Delete deletes the Pod of a workload; grace is in seconds, nil means the
	// Pod's own.
	Delete(ctx context.Context, id string, grace *int64) error
	// Touch notes that a workload, whose Pod has the UID, was in use.
	Touch(ctx context.Context, id, uid string, at time.Time) error
}

// Reader answers from memory.
type Reader interface {
	Get(id string) (*workload.State, bool)
	List(with map[string]string) []*workload.State
}

// Follower makes reads show what was written.
type Follower interface {
	// Wrote shows a Pod that the watch has not brought yet.
	Wrote(pod *unstructured.Unstructured)
	// AwaitDeleted returns once reads show that a Pod is gone, or going.
	AwaitDeleted(ctx context.Context, id string, goingIsEnough bool)
}

// Workloads is the live side: reads that show the caller's own writes.
type Workloads interface {
	Reader
	Follower
}

// Server is the RunnerService. The RPCs that it does not have yet answer
// Unimplemented.
type Server struct {
	runnerv1.UnimplementedRunnerServiceServer

	renderer  Renderer
	writer    Writer
	workloads Workloads
}

// NewServer returns a Server.
func NewServer(renderer Renderer, writer Writer, workloads Workloads) *Server {
	return &Server{renderer: renderer, writer: writer, workloads: workloads}
}

// Ready answers; the server is started when it can serve.
func (s *Server) Ready(context.Context, *runnerv1.ReadyRequest) (*runnerv1.ReadyResponse, error) {
	return &runnerv1.ReadyResponse{Status: "ready"}, nil
}

// find returns the state of the workload that ref, an id or a Pod name, means.
func (s *Server) find(ref string) (*workload.State, error) {
	id, ok := workload.ParseRef(ref)
	if !ok {
		return nil, workload.NoSuchWorkload(ref)
	}
	state, ok := s.workloads.Get(id)
	if !ok {
		return nil, workload.NoSuchWorkload(ref)
	}
	return state, nil
}
