package applier

import "context"

// Phases of a start.
const (
	phaseCreate     = "create"
	phaseDependents = "dependents"
	phaseClaims     = "claims"
	phaseRelease    = "release"
	phaseUndo       = "undo"
)

// Observer is told how starts go.
type Observer interface {
	// Phase: a phase begins. What is done in it has the context inner; end is
	// called with its error.
	Phase(ctx context.Context, name string) (inner context.Context, end func(error))
	// Started: a start has ended. repeated says that its Pod was there before.
	Started(repeated bool, err error)
}

// Observe has o told of all starts. It is called before the first one.
func (a *Applier) Observe(o Observer) { a.observer = o }

// unobserved is for who has no observer.
type unobserved struct{}

func (unobserved) Phase(ctx context.Context, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (unobserved) Started(bool, error) {}

// phase does one phase.
func (a *Applier) phase(ctx context.Context, name string, do func(context.Context) error) error {
	ctx, end := a.observer.Phase(ctx, name)
	err := do(ctx)
	end(err)
	return err
}
