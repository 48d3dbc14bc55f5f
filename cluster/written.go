package cluster

import (
	"maps"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// writtenLimit bounds how long a written object is shown that the watch never
// brings, because it was deleted while the watch was broken. A caller that is
// told too early that a workload is gone believes it.
const writtenLimit = time.Minute

// written holds the objects that were written and have not come through the
// watch yet, so that a caller sees its own start without waiting for it.
type written[T metav1.Object] struct {
	objects map[string]writtenObject[T]
	// version is the highest resource version that came through the watch. The
	// API server's versions are numbers that grow over all objects.
	version int64
}

type writtenObject[T metav1.Object] struct {
	object  T
	version int64
	at      time.Time
}

// Wrote makes reads show an object as the API server returned it, until the
// watch brings it.
func (w *watched[T]) Wrote(object *unstructured.Unstructured) {
	known, version := w.kind.fresh(), number(object.GetResourceVersion())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, known); err != nil {
		return // the API server returned it, so it is one
	}
	w.kind.trim(known)
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.written.objects, func(_ string, o writtenObject[T]) bool { return time.Since(o.at) > writtenLimit })
	if version > w.written.version {
		w.written.objects[known.GetName()] = writtenObject[T]{object: known, version: version, at: time.Now()}
	}
}

// observed forgets what the watch has brought. The caller holds w.mu.
func (w *watched[T]) observed(object T) {
	w.written.version = max(w.written.version, number(object.GetResourceVersion()))
	if o, ok := w.written.objects[object.GetName()]; ok && o.version <= w.written.version {
		delete(w.written.objects, object.GetName())
	}
}

// writtenNamed returns the written object called name.
func (w *watched[T]) writtenNamed(name string) (object T, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.written.objects[name]
	if !ok || time.Since(o.at) > writtenLimit {
		return object, false
	}
	return o.object, true
}

// writtenObjects returns the written objects by name.
func (w *watched[T]) writtenObjects() map[string]T {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]T, len(w.written.objects))
	for name, o := range w.written.objects {
		if time.Since(o.at) <= writtenLimit {
			out[name] = o.object
		}
	}
	return out
}

// number is a resource version as a number; one that is none counts as the
// lowest, so that the watch decides alone.
func number(resourceVersion string) int64 {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
