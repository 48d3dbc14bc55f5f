// Package applier is the only writer to the Kubernetes API. It creates Pods,
// with all that goes with them, and applies changes on the server's side,
// through the dynamic client, and explains the server's answers in the domain's
// words.
package applier

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/agynio/k8s-runner/workload"
)

// Applier writes into one namespace.
type Applier struct {
	namespace string
	client    dynamic.Interface
	kinds     *kinds
	pods      dynamic.ResourceInterface
	claims    dynamic.ResourceInterface
	busy      *busy
	care      care
	observer  Observer
}

// New returns an Applier that writes into namespace.
func New(client dynamic.Interface, discovery Discovery, namespace string) *Applier {
	core := func(resource string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace)
	}
	return &Applier{
		namespace: namespace, client: client, kinds: newKinds(discovery),
		pods: core("pods"), claims: core("persistentvolumeclaims"), busy: &busy{starts: map[string]int{}}, observer: unobserved{},
	}
}

// ours reports whether the runner made object.
func ours(object *unstructured.Unstructured) bool {
	return object.GetLabels()[workload.LabelManagedBy] == workload.ManagedBy
}

// find returns the Pod of workload id as the cluster has it. A Pod of that name
// that the runner did not make is nobody's workload: NotFound, too.
func (a *Applier) find(ctx context.Context, id string) (*unstructured.Unstructured, error) {
	name := workload.PodName(id)
	pod, err := a.pods.Get(ctx, name, metav1.GetOptions{})
	if err == nil && (!ours(pod) || pod.GetLabels()[workload.LabelID] != id) || apierrors.IsNotFound(err) {
		return nil, workload.NoSuchWorkload(id)
	}
	if err != nil {
		return nil, a.explain(err, "reading", name)
	}
	return pod, nil
}

// Delete deletes the Pod of workload id. uid is that of its Pod as reads show it;
// if it is empty, or no longer right, the cluster is asked for it. grace is in
// seconds; nil means the Pod's own. An absent Pod is NotFound, one that is being
// deleted is no error.
//
// The UID keeps the call from a Pod that only has the name of a workload's.
func (a *Applier) Delete(ctx context.Context, id, uid string, grace *int64) error {
	return a.change(ctx, id, uid, "deleting", func(name, uid string) error {
		return a.pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: metav1.NewUIDPreconditions(uid)})
	})
}

// Touch notes on the Pod of workload id that it was in use at time at. uid is as
// Delete has it; an absent Pod is NotFound.
//
// The UID keeps an apply from creating what is gone.
func (a *Applier) Touch(ctx context.Context, id, uid string, at time.Time) error {
	return a.change(ctx, id, uid, "touching", func(name, uid string) error {
		note := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{
				"name": name, "uid": uid,
				"annotations": map[string]any{workload.AnnotationTouchedAt: at.UTC().Format(time.RFC3339Nano)},
			},
		}}
		_, err := a.pods.Apply(ctx, name, note, metav1.ApplyOptions{FieldManager: workload.FieldManager, Force: true})
		return err
	})
}

// change calls write with the name and the UID of the Pod of workload id.
func (a *Applier) change(ctx context.Context, id, uid, doing string, write func(name, uid string) error) error {
	name := workload.PodName(id)
	for tries := 1; ; tries++ {
		if uid == "" {
			pod, err := a.find(ctx, id)
			if err != nil {
				return err
			}
			uid = string(pod.GetUID())
		}
		err := write(name, uid)
		if apierrors.IsNotFound(err) {
			return workload.NoSuchWorkload(id)
		}
		if !conflict(err) || tries == maxTries {
			return a.explain(err, doing, name)
		}
		uid = "" // the name is another Pod's or nobody's now, or somebody else wrote at the same time
	}
}

// conflict reports whether a write was meant for another object, or for another
// version of it.
func conflict(err error) bool {
	return (apierrors.IsConflict(err) || otherUID(err)) && refuser(err) == "" && len(conflicting(err)) == 0
}

// otherUID is what the server says of a patch for another object.
func otherUID(err error) bool { return apierrors.IsInvalid(err) && causes(err) == "metadata.uid" }

// exactly is the condition that object is still the one that was read.
func exactly(uid types.UID, version string) *metav1.Preconditions {
	return &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
}
