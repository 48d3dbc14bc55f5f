package events

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

// ofEarlierPod reports whether an event that was asked for by the name of its Pod
// is of an earlier Pod than the one of this name. If there is none, it is not.
func (s *stream) ofEarlierPod(ctx context.Context, event *corev1.Event) (bool, error) {
	object := event.InvolvedObject
	id, ok := workload.ParseRef(object.Name)
	if !ok || object.Kind != "Pod" || object.UID == "" || !s.namesPod() {
		return false, nil
	}
	uid := string(object.UID)
	if s.earlier[uid] {
		return true, nil
	}
	state, ok := s.cache.Get(id)
	if !ok || state.UID == uid {
		return false, nil
	}
	// Is it an earlier one, or one so new that the cache does not show it?
	pod, err := s.pods.Get(ctx, object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) == uid:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the Pod %s: %w", object.Name, err)
	}
	if s.earlier == nil {
		s.earlier = map[string]bool{}
	}
	s.earlier[uid] = true
	return true, nil
}

// namesPod reports whether the filters have a name of an object, but no UID.
func (s *stream) namesPod() bool {
	has := func(field string) bool {
		return slices.ContainsFunc(s.req.Filters, func(f workload.EventFilter) bool { return f.Field == field })
	}
	return has(byName) && !has(byUID)
}
