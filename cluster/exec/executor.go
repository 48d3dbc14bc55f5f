package exec

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/agynio/k8s-runner/workload"
)

// Pods follows the Pod of a workload.
type Pods interface {
	// Follow calls seen with the state of workload id, nil if it is not there, and
	// again after each change, until seen returns true.
	Follow(ctx context.Context, id string, seen func(*workload.State) bool) error
}

// Options are what an Executor needs.
type Options struct {
	// Config and Client are the cluster's, Namespace is that of the workloads.
	Config    *rest.Config
	Client    kubernetes.Interface
	Namespace string
	Pods      Pods
	Log       *logrus.Logger
}

// Executor runs commands.
type Executor struct {
	dialer dialer
	pods   Pods
	log    *logrus.Logger

	mu sync.Mutex
	// running holds what runs by its id.
	running map[string]*execution
}

// New returns an Executor.
func New(o Options) *Executor {
	return &Executor{
		dialer: dialer{config: o.Config, api: o.Client.CoreV1().RESTClient(), namespace: o.Namespace},
		pods:   o.Pods, log: o.Log, running: map[string]*execution{},
	}
}

// Run runs a command until it ends. Its error is one from before the start. A cause
// of ctx that is a *workload.Error is the runner's reason to end the command; any
// other end of ctx is a caller gone.
func (e *Executor) Run(ctx context.Context, command *workload.Command, session workload.Session) (*workload.Exit, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	x := &execution{id: uuid.NewString(), executor: e, command: command, session: session, end: end, ended: make(chan struct{})}
	e.put(x)
	defer e.forget(x)
	if err := e.awaitRunning(ctx, command.Target); err != nil {
		return nil, err
	}
	return x.run(ctx)
}

// Cancel ends the command that runs as id, and reports whether one did. With force
// its processes are killed. It returns when that is done.
func (e *Executor) Cancel(ctx context.Context, id string, force bool) bool {
	e.mu.Lock()
	x := e.running[id]
	e.mu.Unlock()
	if x == nil {
		return false
	}
	x.end(&ending{reason: workload.Cancelled, kill: force, cause: "it was cancelled"})
	select {
	case <-x.ended:
	case <-ctx.Done():
	}
	return true
}

func (e *Executor) put(x *execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[x.id] = x
}

func (e *Executor) forget(x *execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, x.id)
}

// ending is why a command ends before its process does.
type ending struct {
	reason workload.ExitReason
	// kill has the process and its children killed.
	kill  bool
	cause string
}

func (e *ending) Error() string { return e.cause }

// endingOf is why ctx ended.
func endingOf(ctx context.Context, command *workload.Command) *ending {
	var known *ending
	var ours *workload.Error
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &known):
		return known
	case errors.As(cause, &ours):
		return &ending{reason: workload.RunnerError, kill: command.Kill, cause: ours.Message}
	}
	return &ending{reason: workload.Cancelled, kill: command.Kill, cause: "the caller went away"}
}
