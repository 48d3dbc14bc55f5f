package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/workload"
)

// Render returns the manifests of spec. Its errors are about the templates and
// name the file and where possible the line, except for a *workload.Error: then
// the request holds a name or a path that a template takes as well. No error
// holds a secret value.
func (s *Set) Render(spec *workload.Spec, plan *catalog.Plan, settings Settings) (*Manifests, error) {
	e := s.executors.Get().(*executor) //nolint:forcetypeassert // New makes nothing else
	defer func() {
		e.reset()
		s.executors.Put(e)
	}()
	in := NewInput(spec, plan, settings)
	in.Values = s.values
	objects, err := s.output(e, s.objects, in, false)
	if err != nil {
		return nil, err
	}
	patches, err := s.output(e, s.patches, in, true)
	if err != nil {
		return nil, err
	}
	if err := patched(objects, patches, spec, settings); err != nil {
		return nil, err
	}
	kept := slices.Clone(e.slots) // for Where, after this render
	for i := range objects {
		objects[i].source.slots = kept
		for _, patch := range objects[i].patches {
			patch.source.slots = kept
		}
		if err := s.finish(&objects[i], in, spec, settings); err != nil {
			return nil, err
		}
	}
	return s.collect(objects, in)
}

// output executes templates and decodes what they print, objects or patches.
func (s *Set) output(e *executor, templates []string, in *Input, patches bool) ([]manifest, error) {
	var all []manifest
	for _, name := range templates {
		output, err := e.run(name, in)
		if err != nil {
			return nil, err
		}
		found, err := s.decode(name, output, e.slots, patches)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// finish checks m and seals it.
func (s *Set) finish(m *manifest, in *Input, spec *workload.Spec, settings Settings) error {
	if faults := m.check(settings); len(faults) > 0 {
		return m.errorOf(faults)
	}
	if kindOfObject(m.object) != podKind {
		return m.errorOf(sealOther(m.object, in))
	}
	if found := duplicates(m.object); len(found) > 0 {
		if err := m.collision(found, spec); err != nil {
			return err
		}
		return m.errorOf(twice(found))
	}
	return m.errorOf(s.sealPod(m.object, in, spec, settings))
}

// collect sorts objects by what becomes of them. There is one Pod, and each
// object once.
func (s *Set) collect(objects []manifest, in *Input) (*Manifests, error) {
	out := &Manifests{sources: map[*unstructured.Unstructured]*manifest{}}
	made := map[string]string{}
	for i := range objects {
		m := &objects[i]
		obj := &unstructured.Unstructured{Object: m.object}
		name := kindOfObject(m.object).gvk().GroupKind().String() + " " + obj.GetName()
		if first, twice := made[name]; twice { // the name can hold a secret
			return nil, fmt.Errorf("%s: a second %s of its name; %s makes one already", m.at(nil), obj.GetKind(), first)
		}
		made[name], out.sources[obj] = m.at(nil), m
		switch kindOfObject(m.object) {
		case podKind:
			out.Pod = obj
		case claimKind:
			out.Claims = append(out.Claims, obj)
		default:
			out.Owned = append(out.Owned, obj)
		}
	}
	if out.Pod == nil {
		return nil, fmt.Errorf("%s: no template makes a Pod", strings.Join(s.objects, ", "))
	}
	i := slices.IndexFunc(objects, func(m manifest) bool { return kindOfObject(m.object) == podKind })
	if faults := missing(out, in); len(faults) > 0 {
		return nil, objects[i].errorOf(faults)
	}
	return out, nil
}
