// Package rpc serves the RunnerService and the OperatorService. Its handlers are thin: they read the
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

// Writer changes workloads.
type Writer interface {
	// Start creates a Pod with what it owns and the claims that are absent. It
	// returns the Pod and the claims as the cluster then has them.
	Start(ctx context.Context, pod *unstructured.Unstructured, owned, claims []*unstructured.Unstructured) ([]*unstructured.Unstructured, error)
	// Touch notes that a workload was in use. uid is as Delete has it.
	Touch(ctx context.Context, id, uid string, at time.Time) error
}

// Starts is told how starts go, of those that Writer.Start has not been told of.
type Starts interface {
	// Phase: a phase begins; end is called with its error.
	Phase(ctx context.Context, name string) (inner context.Context, end func(error))
	// Started: a start has ended.
	Started(repeated bool, err error)
}

// Deleter takes away.
type Deleter interface {
	// Delete deletes the Pod of a workload. uid is the Pod's as far as it is
	// known; grace is in seconds, nil means the Pod's own.
	Delete(ctx context.Context, id, uid string, grace *int64) error
	// Mounted returns the UID of a workload's Pod and those of its claims that
	// may be deleted.
	Mounted(ctx context.Context, id string) (uid string, claims []string, err error)
	// DeleteClaim deletes a claim; an absent one is NotFound.
	DeleteClaim(ctx context.Context, name string, force bool) error
}

// Applier is the side that writes.
type Applier interface {
	Writer
	Deleter
}

// Follower makes reads show what was written.
type Follower interface {
	// Wrote shows an object that the watch has not brought yet.
	Wrote(object *unstructured.Unstructured)
	// Deleting runs del, which deletes the object called name, and returns its
	// error once reads show that the object is gone or, if that is enough, going.
	// That finalizers keep it is an error, too.
	Deleting(ctx context.Context, name string, goingIsEnough bool, del func() error) error
}

// Workloads answers from memory, and shows the caller's own writes.
type Workloads interface {
	Get(id string) (*workload.State, bool)
	List(with map[string]string) []*workload.State
	Follower
}

// Volumes does that for claims.
type Volumes interface {
	// Keys returns the volume keys of the claims that have one, by claim name.
	Keys() map[string]string
	Follower
}

// Parts are what a Server is made of. Without an Executor, Logs, Events or
// Archives, its RPCs answer Unimplemented.
type Parts struct {
	Renderer  Renderer
	Applier   Applier
	Workloads Workloads
	Volumes   Volumes
	Executor  Executor
	Logs      Logs
	Events    Events
	Archives  Archives
	// Starts may be nil.
	Starts Starts
	// MaxArchive is the size of the largest archive for Archives, in bytes.
	MaxArchive int64
	// StreamsPerWorkload bounds the streams of one workload; 0 means no bound.
	StreamsPerWorkload int
}

// Server is the RunnerService.
type Server struct {
	runnerv1.UnimplementedRunnerServiceServer

	renderer  Renderer
	applier   Applier
	workloads Workloads
	volumes   Volumes
	executor  Executor
	logs      Logs
	events    Events
	archives  Archives
	starts    Starts

	maxArchive int64
	streams    *streams
}

// NewServer returns a Server.
func NewServer(p Parts) *Server {
	return &Server{
		renderer: p.Renderer, applier: p.Applier, workloads: p.Workloads, volumes: p.Volumes,
		executor: p.Executor, logs: p.Logs, events: p.Events, archives: p.Archives, starts: p.Starts, maxArchive: p.MaxArchive,
		streams: newStreams(p.StreamsPerWorkload),
	}
}

// EndStreams ends every stream, so that a server need not wait for it.
func (s *Server) EndStreams() { s.streams.end() }

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
