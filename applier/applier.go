// Package applier is the only writer to the Kubernetes API. It creates Pods and
// applies changes on the server's side, through the dynamic client, and
// explains the server's answers in the domain's words.
package applier

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/agynio/k8s-runner/workload"
)

// Applier writes into one namespace.
type Applier struct {
	namespace string
	pods      dynamic.ResourceInterface
}

// New returns an Applier that writes into namespace.
func New(client dynamic.Interface, namespace string) *Applier {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	return &Applier{namespace: namespace, pods: client.Resource(pods).Namespace(namespace)}
}

// retryTerminating is when to ask again for a workload whose Pod is going.
const retryTerminating = 2 * time.Second

// Start creates the Pod of a workload and returns it as it then is. Starting
// the same request again changes nothing. A Pod of another request under this
// name is AlreadyExists, one that is being deleted is FailedPrecondition.
//
// A Pod is created and not applied: a create never changes what is there, also
// when replicas race, and costs the API server a third less CPU than an apply.
func (a *Applier) Start(ctx context.Context, pod *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := a.create(ctx, pod)
	if err != nil && ctx.Err() == nil {
		// Whatever it said: the Pod may be there, of an earlier start or of one
		// whose reply was lost, and admission refuses before it looks.
		if found, getErr := a.pods.Get(ctx, pod.GetName(), metav1.GetOptions{}); getErr == nil {
			made, err = found, nil
		}
	}
	if err != nil {
		return nil, a.explain(err, "starting workload", pod.GetName())
	}
	return made, accept(made, pod.GetAnnotations()[workload.AnnotationDigest])
}

// Between two tries of a create that the server could not take.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	// maxTries bounds a caller without a deadline to some ten seconds.
	maxTries = 10
)

// create creates pod. What the server cannot do now is tried again within the
// caller's deadline.
func (a *Applier) create(ctx context.Context, pod *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	// Rendering has checked the fields more strictly than the server would.
	options := metav1.CreateOptions{FieldManager: workload.FieldManager, FieldValidation: metav1.FieldValidationIgnore}
	pause := firstPause
	for tries := 1; ; tries++ {
		made, err := a.pods.Create(ctx, pod, options)
		if err == nil || !passing(err) || tries == maxTries {
			return made, err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*pause {
			return nil, err // no time for another try and its answer
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
			pause = min(2*pause, lastPause)
		}
	}
}

// accept decides whether the Pod that is there is the one that was asked for.
func accept(pod *unstructured.Unstructured, digest string) error {
	if pod.GetDeletionTimestamp() != nil {
		return workload.Errorf(workload.FailedPrecondition, "workload_terminating",
			"the Pod %s is still being deleted", pod.GetName()).Retry(retryTerminating)
	}
	if pod.GetAnnotations()[workload.AnnotationDigest] != digest {
		return workload.Errorf(workload.AlreadyExists, "workload_exists",
			"the Pod %s was started by a different request and stays as it is", pod.GetName())
	}
	return nil
}

// Delete deletes the Pod of workload id. grace is in seconds; nil means the
// Pod's own. An absent Pod is NotFound, one that is being deleted is no error.
func (a *Applier) Delete(ctx context.Context, id string, grace *int64) error {
	name := workload.PodName(id)
	err := a.pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: grace})
	if apierrors.IsNotFound(err) {
		return workload.NoSuchWorkload(id)
	}
	return a.explain(err, "deleting", name)
}

// Touch notes on the Pod of workload id that it was in use at time at. If the
// Pod with this UID is no longer there, it is NotFound.
func (a *Applier) Touch(ctx context.Context, id, uid string, at time.Time) error {
	name := workload.PodName(id)
	// The UID keeps an apply from creating what is gone.
	note := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": name, "uid": uid,
			"annotations": map[string]any{workload.AnnotationTouchedAt: at.UTC().Format(time.RFC3339Nano)},
		},
	}}
	_, err := a.pods.Apply(ctx, name, note, metav1.ApplyOptions{FieldManager: workload.FieldManager, Force: true})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return workload.NoSuchWorkload(id)
	}
	return a.explain(err, "touching", name)
}
