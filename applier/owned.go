package applier

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/agynio/k8s-runner/workload"
)

// errLeftover: the object is there as it should be, but it was an earlier Pod's
// and the garbage collector has not let go of it.
var errLeftover = errors.New("it still belongs to an earlier Pod") //nolint:gochecknoglobals // a sentinel

// own applies object so that it lives and dies with pod.
//
// What an earlier Pod of this name left, the apply takes over. But the garbage
// collector may have decided on it before and delete it after: up to Kubernetes
// 1.33 it looks at the owners first and then deletes whatever has the UID. So the
// apply is repeated until pod alone owns what comes back: the collector works on
// an object in one place, and whether it has taken the earlier owner off or the
// object away, it is done.
func (a *Applier) own(ctx context.Context, object, pod *unstructured.Unstructured) error {
	kind, owned := object.GetKind(), ownedBy(object, pod)
	// The plural without asking the server: right for every kind of Kubernetes.
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	client := a.client.Resource(resource).Namespace(a.namespace)
	_, err := retry(ctx, passingOwned, func() (struct{}, error) {
		made, err := apply(ctx, client, owned)
		if err == nil && !ownedAlone(made, pod.GetUID()) {
			err = errLeftover
		}
		return struct{}{}, err
	})
	switch doing := "applying the " + kind; {
	case errors.Is(err, errLeftover):
		return workload.Errorf(workload.FailedPrecondition, "workload_terminating",
			"the %s %s of an earlier Pod is still being deleted", kind, object.GetName()).Retry(retryTerminating)
	case apierrors.IsNotFound(err) && kindOf(err) != "namespaces":
		return workload.Errorf(workload.FailedPrecondition, "rejected_by_kubernetes",
			"%s %s: the cluster has no kind %s of %s", doing, object.GetName(), kind, object.GetAPIVersion()).Because(withoutValues(err))
	default:
		return a.explain(err, doing, object.GetName())
	}
}

// apply applies object on the server's side. Fields that the runner itself once
// wrote in another way are its own; those of others stay theirs.
func apply(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	options := metav1.ApplyOptions{FieldManager: workload.FieldManager}
	made, err := client.Apply(ctx, object.GetName(), object, options)
	if holders := conflicting(err); len(holders) == 1 && holders[0] == workload.FieldManager {
		options.Force = true
		return client.Apply(ctx, object.GetName(), object, options)
	}
	return made, err
}

// passingOwned is passing, where something of an earlier Pod may be in the way.
func passingOwned(err error) bool {
	return errors.Is(err, errLeftover) || immutable(err) || passing(err)
}

// immutable reports whether what is there cannot become what was asked for. If it
// is an earlier Pod's, it goes.
func immutable(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(details(err).Causes, func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, "field is immutable")
	})
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

// ownedAlone reports whether object stays as long as its one owner does.
func ownedAlone(object *unstructured.Unstructured, owner types.UID) bool {
	owners := object.GetOwnerReferences()
	return len(owners) == 1 && owners[0].UID == owner && object.GetDeletionTimestamp() == nil
}
