package render

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Manifests are the objects of one workload.
type Manifests struct {
	// Pod is the workload itself.
	Pod *unstructured.Unstructured
	// Owned live and die with the Pod: Secrets, a NetworkPolicy.
	Owned []*unstructured.Unstructured
	// Claims outlive the Pod. One that is there already stays as it is.
	Claims []*unstructured.Unstructured
}

// All returns the objects in the order in which they are applied.
func (m *Manifests) All() []*unstructured.Unstructured {
	all := append([]*unstructured.Unstructured{m.Pod}, m.Owned...)
	return append(all, m.Claims...)
}
