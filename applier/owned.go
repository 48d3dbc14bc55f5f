package applier

import (
	"context"
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/agynio/k8s-runner/workload"
)

// errLeftover: an object of an earlier Pod has the name still.
var errLeftover = errors.New("it still belongs to an earlier Pod")

// own makes object be there so that it lives and dies with pod. What an earlier
// start made for this Pod is applied anew; what an earlier Pod of this name left
// must be gone first.
//
// A leftover is not taken over, as an apply would: the garbage collector may
// have looked at its owners before and delete it afterwards. Up to Kubernetes
// 1.33 nothing keeps it from that (kubernetes/kubernetes#114603), and the Pod
// would wait for its Secret forever.
func (a *Applier) own(ctx context.Context, object, pod *unstructured.Unstructured) error {
	kind, owned := object.GroupVersionKind(), ownedBy(object, pod)
	_, err := retry(ctx, passingOwned, func() (struct{}, error) {
		resource, err := a.kinds.resource(ctx, kind)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, a.ensure(ctx, a.client.Resource(resource).Namespace(a.namespace), owned, pod)
	})
	if errors.Is(err, errLeftover) {
		return workload.Errorf(workload.FailedPrecondition, "workload_terminating",
			"the %s %s of an earlier Pod is still being deleted", kind.Kind, object.GetName()).Retry(retryTerminating)
	}
	if apierrors.IsNotFound(err) {
		a.kinds.forget(kind) // it may have come back as another resource
	}
	return a.explainKind(err, "making the "+kind.Kind, object)
}

// passingOwned is passing, where something of an earlier Pod may be in the way.
func passingOwned(err error) bool {
	return errors.Is(err, errLeftover) || apierrors.IsAlreadyExists(err) || passing(err)
}

// ensure creates object, which pod owns, or applies it if it is there already and
// this Pod's.
func (a *Applier) ensure(ctx context.Context, client dynamic.ResourceInterface, object, pod *unstructured.Unstructured) error {
	_, err := client.Create(ctx, object, createOptionsOf(object))
	if err == nil {
		return nil
	}
	// Whatever it said: it may be there, and admission refuses before it looks.
	// A patch that changes nothing reads it, and needs no permission to read
	// Secrets.
	there, lookErr := client.Patch(ctx, object.GetName(), types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	if apierrors.IsAlreadyExists(err) && apierrors.IsForbidden(lookErr) {
		return lookErr // for good, which the other is not
	}
	if lookErr != nil {
		return err
	}
	owners := there.GetOwnerReferences()
	switch {
	case there.GetDeletionTimestamp() != nil:
		return a.leftover(ctx, pod)
	case slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == pod.GetUID() }):
		return apply(ctx, client, object)
	case slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.Kind == "Pod" && o.Name == pod.GetName() }):
		return a.leftover(ctx, pod)
	}
	return fieldConflict(there)
}

// leftover tells whether what belongs to another Pod of this name is left of an
// earlier one, or is of a later one that has taken the place of pod.
func (a *Applier) leftover(ctx context.Context, pod *unstructured.Unstructured) error {
	now, err := a.pods.Get(ctx, pod.GetName(), metav1.GetOptions{})
	if err == nil && now.GetUID() != pod.GetUID() {
		return errReplaced
	}
	return errLeftover
}

// apply applies object on the server's side. Fields that the runner itself wrote
// in another way are its own; those of others stay theirs.
func apply(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	options := metav1.ApplyOptions{FieldManager: workload.FieldManager}
	_, err := client.Apply(ctx, object.GetName(), object, options)
	if holders := conflicting(err); len(holders) == 1 && holders[0] == workload.FieldManager {
		options.Force = true
		_, err = client.Apply(ctx, object.GetName(), object, options)
	}
	return err
}

// fieldConflict is the conflict with those who made object, which is nothing of
// the runner's.
func fieldConflict(object *unstructured.Unstructured) error {
	var causes []metav1.StatusCause
	for _, f := range object.GetManagedFields() {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "` + f.Manager + `"`})
	}
	if len(causes) == 0 {
		causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "somebody else"`}}
	}
	return apierrors.NewApplyConflict(causes, "it is there already")
}

// conflicting lists the field managers, sorted, that own what an apply would
// change.
func conflicting(err error) []string {
	var managers []string
	for _, c := range details(err).Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			managers = append(managers, between(c.Message, `conflict with "`, `"`))
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}

// ownedBy returns object with pod as its owner. What it does not change it shares
// with object.
func ownedBy(object, pod *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": "v1", "kind": "Pod", "name": pod.GetName(), "uid": string(pod.GetUID()), "controller": false,
	}}
	owned := maps.Clone(object.Object)
	owned["metadata"] = metadata
	return &unstructured.Unstructured{Object: owned}
}
