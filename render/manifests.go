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

	sources map[*unstructured.Unstructured]*manifest
}

// Where returns the file and line of the template where a field of obj stands,
// or if it has no line of its own, what it is a part of. The steps of path are
// names and indices.
func (m *Manifests) Where(obj *unstructured.Unstructured, path ...any) string {
	source := m.sources[obj]
	if source == nil {
		return ""
	}
	return source.at(path)
}

// File returns the file of the template that made obj.
func (m *Manifests) File(obj *unstructured.Unstructured) string {
	source := m.sources[obj]
	if source == nil {
		return ""
	}
	return source.source.file
}

// All returns the objects in the order in which they are applied.
func (m *Manifests) All() []*unstructured.Unstructured {
	all := append([]*unstructured.Unstructured{m.Pod}, m.Owned...)
	return append(all, m.Claims...)
}
