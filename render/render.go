package render

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/workload"
)

// Render returns the manifests of spec.
// Its errors are about the templates and name the file and where possible the
// line, except for a *workload.Error: then the request holds a name or a path
// that a template takes as well. No error holds a secret value.
func (s *Set) Render(spec *workload.Spec, settings Settings) (*Manifests, error) {
	e := s.executors.Get().(*executor) //nolint:forcetypeassert // New makes nothing else
	defer func() {
		e.reset()
		s.executors.Put(e)
	}()
	in := NewInput(spec, settings)
	out := &Manifests{}
	first := ""
	for _, file := range s.objects {
		output, err := e.run(file, in)
		if err != nil {
			return nil, err
		}
		manifests, err := decode(file, output, e.slots)
		if err != nil {
			return nil, err
		}
		for i := range manifests {
			here := manifests[i].at(nil)
			if first != "" {
				return nil, fmt.Errorf("%s: a second Pod; %s makes one already", here, first)
			}
			pod, err := s.finish(&manifests[i], in, spec)
			if err != nil {
				return nil, err
			}
			out.Pod, first = pod, here
		}
	}
	if out.Pod == nil {
		return nil, fmt.Errorf("%s: no template makes a Pod", strings.Join(s.objects, ", "))
	}
	return out, nil
}

// finish checks m and seals it.
func (s *Set) finish(m *manifest, in *Input, spec *workload.Spec) (*unstructured.Unstructured, error) {
	if faults := s.check(m.object); len(faults) > 0 {
		return nil, m.errorOf(faults)
	}
	if found := duplicates(m.object); len(found) > 0 {
		if err := m.collision(found, spec); err != nil {
			return nil, err
		}
		return nil, m.errorOf(twice(found))
	}
	if faults := s.seal(m.object, in, spec); len(faults) > 0 {
		return nil, m.errorOf(faults)
	}
	return &unstructured.Unstructured{Object: m.object}, nil
}
