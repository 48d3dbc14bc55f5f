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
	// PerWorkload bounds the commands that run at once in a workload.
	PerWorkload int
	Log         *logrus.Logger
}

// Executor runs commands.
type Executor struct {
	dialer      dialer
	pods        Pods
	perWorkload int
	log         *logrus.Logger

	mu sync.Mutex
	// running holds what runs by its id, counts how many run in a workload.
	running map[string]*execution
	counts  map[string]int
	closed  bool
}

// New returns an Executor.
func New(o Options) *Executor {
	return &Executor{
		dialer: dialer{config: o.Config, api: o.Client.CoreV1().RESTClient(), namespace: o.Namespace},
		pods:   o.Pods, perWorkload: o.PerWorkload, log: o.Log,
		running: map[string]*execution{}, counts: map[string]int{},
	}
}

// Run runs a command until it ends. Its error is one from before the start, which
// has left no process behind.
func (e *Executor) Run(ctx context.Context, command *workload.Command, session workload.Session) (*workload.Exit, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	x := &execution{id: uuid.NewString(), executor: e, command: command, session: session, end: end, ended: make(chan struct{})}
	if err := e.admit(x); err != nil {
		return nil, err
	}
	defer e.release(x)
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

// Shutdown ends everything that runs, and refuses what comes.
func (e *Executor) Shutdown() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, x := range e.running {
		x.end(&ending{reason: workload.RunnerError, kill: x.command.Kill, cause: "the runner shuts down"})
	}
}

func (e *Executor) admit(x *execution) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := x.command.Target.ID
	switch {
	case e.closed:
		return workload.Errorf(workload.Unavailable, "shutting_down", "the runner shuts down").Retry(retrySoon)
	case e.counts[id] >= e.perWorkload:
		return workload.Errorf(workload.ResourceExhausted, "too_many_streams",
			"%d commands run in workload %s, and that is the limit", e.counts[id], id).Retry(retrySoon)
	}
	e.counts[id]++
	e.running[x.id] = x
	return nil
}

func (e *Executor) release(x *execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, x.id)
	if id := x.command.Target.ID; e.counts[id] > 1 {
		e.counts[id]--
	} else {
		delete(e.counts, id)
	}
}

// ending is why a command ends before its process does.
type ending struct {
	reason workload.ExitReason
	// kill has the process and its children killed.
	kill  bool
	cause string
}

func (e *ending) Error() string { return e.cause }

// endingOf is why ctx ended. One that the caller ended is a caller gone.
func endingOf(ctx context.Context, command *workload.Command) *ending {
	var known *ending
	if errors.As(context.Cause(ctx), &known) {
		return known
	}
	return &ending{reason: workload.Cancelled, kill: command.Kill, cause: "the caller went away"}
}
