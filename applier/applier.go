// Package applier is the only writer to the Kubernetes API. It applies
// manifests on the server's side through the dynamic client and explains the
// server's answers in the domain's words.
package applier

import (
	"context"
	"encoding/json"
	"fmt"
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
	pods      dynamic.ResourceInterface
}

// New returns an Applier that writes into namespace.
func New(client dynamic.Interface, namespace string) *Applier {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	return &Applier{namespace: namespace, pods: client.Resource(pods).Namespace(namespace)}
}

// retryTerminating is when to ask again for a workload whose Pod is going.
const retryTerminating = 2 * time.Second

// Start applies the Pod of a workload and returns its UID. Starting the same
// request again changes nothing. A Pod of another request under this name is
// AlreadyExists, one that is being deleted is FailedPrecondition.
func (a *Applier) Start(ctx context.Context, pod *unstructured.Unstructured) (uid string, err error) {
	digest := pod.GetAnnotations()[workload.AnnotationDigest]
	applied, err := a.pods.Apply(ctx, pod.GetName(), pod, metav1.ApplyOptions{FieldManager: fieldManager(digest)})
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		applied, err = a.existing(ctx, pod.GetName(), err)
	}
	if err != nil {
		return "", a.explain(err, "starting workload", pod.GetName())
	}
	return accept(applied, digest)
}

// fieldManager is a name that only the same request has. Applied without
// force, it makes an apply create-only: another request under the same name
// conflicts, also between replicas.
func fieldManager(digest string) string {
	return workload.FieldManager + "-" + digest[:min(len(digest), 32)]
}

// existing returns the Pod that stood in the way of an apply, or the error of
// the apply if there is none.
func (a *Applier) existing(ctx context.Context, name string, applyErr error) (*unstructured.Unstructured, error) {
	found, err := a.pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, applyErr
	}
	return found, err
}

// accept decides whether the Pod that is there is the one that was asked for.
func accept(pod *unstructured.Unstructured, digest string) (uid string, err error) {
	if pod.GetDeletionTimestamp() != nil {
		return "", workload.Errorf(workload.FailedPrecondition, "workload_terminating",
			"the Pod %s is still being deleted", pod.GetName()).Retry(retryTerminating)
	}
	if pod.GetAnnotations()[workload.AnnotationDigest] != digest {
		return "", workload.Errorf(workload.AlreadyExists, "workload_exists",
			"the Pod %s was started by a different request and stays as it is", pod.GetName())
	}
	return string(pod.GetUID()), nil
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

// Touch notes on the Pod of workload id that it was in use at time at. An
// absent Pod is NotFound.
func (a *Applier) Touch(ctx context.Context, id string, at time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		workload.AnnotationTouchedAt: at.UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	name := workload.PodName(id)
	// A patch and not an apply, which would create what is not there.
	_, err = a.pods.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: workload.FieldManager})
	if apierrors.IsNotFound(err) {
		return workload.NoSuchWorkload(id)
	}
	return a.explain(err, "touching", name)
}
