package applier

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agynio/k8s-runner/workload"
)

// Gate is the scheduling gate of a Pod whose start is unfinished.
const Gate = workload.Gate

const (
	// retryTerminating is when to ask again for a workload whose Pod is going.
	retryTerminating = 2 * time.Second
	// maxStarts bounds how often a start begins anew.
	maxStarts = 3
	// maxAtOnce bounds the requests of one start that are on their way for what the
	// Pod owns, and as well for its claims.
	maxAtOnce = 8
	// undoLimit bounds the removal of what a failed start made, which outlives
	// its caller.
	undoLimit = 8 * time.Second
)

// errReplaced: the Pod of a start is gone, or another one has its name. Another
// call for the same request may have failed and undone what both had begun.
var errReplaced = errors.New("the Pod went while it was started")

// Start creates the Pod of a workload with what it owns, such as Secrets, and
// the claims that it mounts and that are absent. It returns the Pod and then
// the claims, as the cluster then has them. Starting the same request again
// completes what an earlier start left unfinished, and else writes nothing; only
// the Pod is returned then. A Pod of another request under this name is
// AlreadyExists, one that is being deleted is FailedPrecondition.
//
// A Pod is created and not applied: a create never changes what is there, also
// when replicas race, and costs the API server a third less CPU than an apply.
//
// The owner comes first, so that whatever happens, nothing is left that the
// garbage collector does not take with the Pod; claims are never owned. A gate
// keeps the Pod from being scheduled until the rest is there. If that fails, the
// Pod is deleted again, unless an earlier start made it and trying again can
// help.
func (a *Applier) Start(ctx context.Context, pod *unstructured.Unstructured, owned, claims []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	defer a.busy.enter(pod.GetName())()
	for tries := 1; ; tries++ {
		all, found, err := a.startOnce(ctx, pod, owned, claims)
		if !errors.Is(err, errReplaced) || tries == maxStarts {
			a.observer.Started(found, err)
			return all, err
		}
	}
}

func (a *Applier) startOnce(ctx context.Context, pod *unstructured.Unstructured, owned, claims []*unstructured.Unstructured) (all []*unstructured.Unstructured, found bool, err error) {
	first := pod
	if len(owned)+len(claims) > 0 {
		first = withGate(pod)
	}
	var there *unstructured.Unstructured
	var known reading
	err = a.phase(ctx, phaseCreate, func(ctx context.Context) (err error) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		look := a.look(ctx, claims) // costs no time beside the create
		if there, found, err = a.createOrFind(ctx, first); err != nil {
			return a.explain(err, "starting workload", pod.GetName())
		}
		if err = accept(there, pod.GetAnnotations()[workload.AnnotationDigest]); err != nil || !gated(there) {
			return err // whatever the claims are
		}
		known = <-look
		return nil
	})
	if err != nil {
		return nil, found, err
	}
	if !gated(there) {
		return []*unstructured.Unstructured{there}, found, nil
	}
	all, err = a.complete(ctx, there, owned, claims, known)
	if err != nil && (!found || !mayPass(err)) {
		_ = a.phase(ctx, phaseUndo, func(ctx context.Context) error {
			return a.undo(ctx, there)
		})
	}
	return all, found, err
}

// mayPass reports whether a start that failed may succeed when it is made again.
// If it may not, the id must be free for the corrected request, whose digest is
// another one.
func mayPass(err error) bool {
	var e *workload.Error
	return errors.As(err, &e) && e.Kind == workload.Unavailable ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// createOrFind creates pod or, if that is refused, returns what has its name.
func (a *Applier) createOrFind(ctx context.Context, pod *unstructured.Unstructured) (there *unstructured.Unstructured, found bool, err error) {
	made, err := retry(ctx, passing, func() (*unstructured.Unstructured, error) {
		return a.pods.Create(ctx, pod, createOptions())
	})
	if err == nil {
		return made, false, nil
	}
	// Whatever it said: the Pod may be there, of an earlier start or of one
	// whose reply was lost, and admission refuses before it looks.
	there, getErr := a.pods.Get(ctx, pod.GetName(), metav1.GetOptions{})
	switch {
	case getErr == nil:
		return there, true, nil
	case apierrors.IsAlreadyExists(err) && apierrors.IsNotFound(getErr):
		return nil, false, errReplaced
	case apierrors.IsAlreadyExists(err) && apierrors.IsForbidden(getErr):
		return nil, false, getErr
	}
	return nil, false, err
}

// createOptions: rendering has checked the fields more strictly than the server
// would.
func createOptions() metav1.CreateOptions {
	return metav1.CreateOptions{FieldManager: workload.FieldManager, FieldValidation: metav1.FieldValidationIgnore}
}

// accept decides whether the Pod that is there is the one that was asked for.
func accept(pod *unstructured.Unstructured, digest string) error {
	if pod.GetDeletionTimestamp() != nil {
		return errTerminating(pod)
	}
	if pod.GetAnnotations()[workload.AnnotationDigest] != digest {
		return workload.Errorf(workload.AlreadyExists, "workload_exists",
			"the Pod %s was started by a different request and stays as it is", pod.GetName())
	}
	return nil
}

func errTerminating(pod *unstructured.Unstructured) error {
	return workload.Errorf(workload.FailedPrecondition, "workload_terminating",
		"the Pod %s is still being deleted", pod.GetName()).Retry(retryTerminating)
}

// complete writes what goes with the gated pod and then lets it be scheduled. It
// returns the Pod and the claims.
func (a *Applier) complete(ctx context.Context, pod *unstructured.Unstructured, owned, claims []*unstructured.Unstructured, known reading) ([]*unstructured.Unstructured, error) {
	if err := a.dependents(ctx, pod, owned, claims, known); err != nil {
		return nil, err
	}
	var free *unstructured.Unstructured
	err := a.phase(ctx, phaseRelease, func(ctx context.Context) (err error) {
		free, err = a.lift(ctx, pod)
		return err
	})
	if err != nil {
		return nil, err
	}
	return append([]*unstructured.Unstructured{free}, known.claims...), nil
}

// dependents makes what pod owns, and the claims that are absent from known, where
// it then puts them.
//
// Side by side, that saves a caller the time of a write. But a claim, once made,
// is not taken away again: where a start failed here of late, the claims wait for
// what can be refused, so that a namespace that refuses start after start does not
// fill up with them.
func (a *Applier) dependents(ctx context.Context, pod *unstructured.Unstructured, owned, claims []*unstructured.Unstructured, known reading) (err error) {
	defer func() { a.care.after(err) }()
	own := func(ctx context.Context) error {
		if known.err != nil {
			return known.err
		}
		return a.ownAll(ctx, owned, pod)
	}
	claim := func(ctx context.Context) error { return a.absent(ctx, claims, known.claims) }
	if known.err != nil || !slices.Contains(known.claims, nil) {
		return a.phase(ctx, phaseDependents, own)
	}
	if a.care.wanted() {
		if err := a.phase(ctx, phaseDependents, own); err != nil {
			return err
		}
		return a.phase(ctx, phaseClaims, claim)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.phase(ctx, phaseDependents, own) })
	group.Go(func() error { return a.phase(ctx, phaseClaims, claim) })
	return group.Wait()
}

// ownAll makes what pod owns.
func (a *Applier) ownAll(ctx context.Context, owned []*unstructured.Unstructured, pod *unstructured.Unstructured) error {
	group, ctx := sideBySide(ctx)
	for _, object := range owned {
		group.Go(func() error { return a.own(ctx, object, pod) })
	}
	return group.Wait()
}

// absent makes the claims that are not there.
func (a *Applier) absent(ctx context.Context, claims, there []*unstructured.Unstructured) error {
	group, ctx := sideBySide(ctx)
	for i, claim := range claims {
		if there[i] != nil {
			continue
		}
		group.Go(func() (err error) {
			there[i], err = a.create(ctx, claim)
			return err
		})
	}
	return group.Wait()
}

func sideBySide(ctx context.Context) (*errgroup.Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	return group, ctx
}

// lift takes the gate off pod; a gate that is off already stays off. A merge is
// what does both, and the UID in it, which nobody can change, keeps it from
// another Pod.
func (a *Applier) lift(ctx context.Context, pod *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.GetUID()},
		"spec":     map[string]any{"schedulingGates": []any{map[string]any{"name": Gate, "$patch": "delete"}}},
	})
	if err != nil {
		return nil, err
	}
	free, err := retry(ctx, passing, func() (*unstructured.Unstructured, error) {
		return a.pods.Patch(ctx, pod.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: workload.FieldManager, FieldValidation: metav1.FieldValidationIgnore})
	})
	if apierrors.IsNotFound(err) || otherUID(err) {
		err = errReplaced
	}
	if err == nil && free.GetDeletionTimestamp() != nil { // a finalizer keeps it
		return nil, errTerminating(free)
	}
	return free, a.explain(err, "letting the scheduler have", pod.GetName())
}

// undo deletes the Pod that a failed start created. If another replica has
// completed the start meanwhile, the Pod stays. What it cannot do is left to a
// retry of the start, or to Reap.
func (a *Applier) undo(ctx context.Context, pod *unstructured.Unstructured) error {
	// A caller that went away is a reason to clean up, not to stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	for uid := pod.GetUID(); ; {
		_, err := retry(ctx, unavailable, func() (struct{}, error) {
			return struct{}{}, a.pods.Delete(ctx, pod.GetName(), metav1.DeleteOptions{Preconditions: exactly(uid, pod.GetResourceVersion())})
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return a.explain(err, "taking back", pod.GetName())
		}
		name := pod.GetName()
		pod, err = retry(ctx, unavailable, func() (*unstructured.Unstructured, error) {
			return a.pods.Get(ctx, name, metav1.GetOptions{})
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return a.explain(err, "taking back", name)
		case pod.GetUID() != uid || !gated(pod):
			return nil
		}
	}
}

// withGate returns pod with the gate beside those that it has. What it does not
// change it shares with pod.
func withGate(pod *unstructured.Unstructured) *unstructured.Unstructured {
	if gated(pod) {
		return pod
	}
	spec, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec")
	fields, _ := spec.(map[string]any)
	if fields = maps.Clone(fields); fields == nil {
		fields = map[string]any{}
	}
	fields["schedulingGates"] = append(slices.Clone(gates(pod)), map[string]any{"name": Gate})
	object := maps.Clone(pod.Object)
	object["spec"] = fields
	return &unstructured.Unstructured{Object: object}
}

// gated reports whether pod waits for what goes with it.
func gated(pod *unstructured.Unstructured) bool {
	return slices.ContainsFunc(gates(pod), func(gate any) bool {
		fields, _ := gate.(map[string]any)
		return fields["name"] == Gate
	})
}

func gates(pod *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec", "schedulingGates")
	gates, _ := list.([]any)
	return gates
}
