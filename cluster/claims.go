package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/workload"
)

// Claims is a watched cache of the PersistentVolumeClaims that the runner made
// in one namespace.
type Claims struct {
	*watched[*corev1.PersistentVolumeClaim]
}

// NewClaims returns a cache that is empty until Run has filled it.
func NewClaims(client kubernetes.Interface, namespace string) (*Claims, error) {
	w, err := watch(client, namespace, kind[*corev1.PersistentVolumeClaim]{
		plural: "claims",
		informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().PersistentVolumeClaims().Informer()
		},
		fresh: func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} },
		get: func(ctx context.Context, client kubernetes.Interface, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
			return client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		trim: trimClaim,
	})
	if err != nil {
		return nil, err
	}
	return &Claims{w}, nil
}

// Keys returns the volume keys of the claims that have one, by the claim's name.
// A claim that is being deleted is left out: to its caller it is removed, though
// a Pod may still use it.
func (c *Claims) Keys() map[string]string {
	keys := map[string]string{}
	for _, claim := range c.all(nil) {
		if key, ok := claim.Labels[workload.LabelVolumeKey]; ok && claim.DeletionTimestamp == nil {
			keys[claim.Name] = key
		}
	}
	return keys
}

// trimClaim keeps of a claim what tells it from others.
func trimClaim(claim *corev1.PersistentVolumeClaim) {
	claim.ManagedFields = nil
	claim.OwnerReferences = nil
	claim.Annotations = nil
	claim.Spec = corev1.PersistentVolumeClaimSpec{}
	claim.Status = corev1.PersistentVolumeClaimStatus{}
}
