package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/workload"
)

// Render returns the manifests of spec in the order in which they are applied.
// Its errors are about the templates, never about the request, and name the
// file and where possible the line.
func (s *Set) Render(spec *workload.Spec, settings Settings) ([]*unstructured.Unstructured, error) {
	e := s.executors.Get().(*executor) //nolint:forcetypeassert // New makes nothing else
	defer func() {
		e.reset()
		s.executors.Put(e)
	}()
	in := NewInput(spec, settings)
	var manifests []*unstructured.Unstructured
	for _, file := range s.objects {
		output, err := e.run(file, in)
		if err != nil {
			return nil, err
		}
		objects, err := decode(output, e.slots)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			obj := &unstructured.Unstructured{Object: o}
			pod, err := check(obj)
			if err == nil {
				err = seal(obj, pod, in, spec, s.digest)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			manifests = append(manifests, obj)
		}
	}
	if len(manifests) != 1 {
		return nil, fmt.Errorf("the templates make %d Pods instead of one", len(manifests))
	}
	return manifests, nil
}
