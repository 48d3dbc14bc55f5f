package cluster

import (
	"maps"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// writtenLimit bounds how long a written object is shown that the watch never
// brings, because it was deleted while the watch was broken. A caller that is
// told too early that a workload is gone believes it.
const writtenLimit = time.Minute

// written holds the objects that were written and have not come through the
// watch yet, so that a caller sees its own start without waiting for it.
type written[T metav1.Object] struct {
	objects map[string]writtenObject[T]
	// gone are objects that the API server said are gone, by name, until the watch
	// says so, too.
	gone map[string]goneObject
	// version is the highest resource version that came through the watch. The
	// API server's versions are numbers that grow over all objects.
	version int64
}

type goneObject struct {
	uid types.UID
	at  time.Time
}

type writtenObject[T metav1.Object] struct {
	object  T
	version int64
	at      time.Time
}

// Wrote makes reads show an object as the API server returned it, until the
// watch brings it.
func (w *watched[T]) Wrote(object *unstructured.Unstructured) {
	known := w.kind.fresh()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, known); err != nil {
		return // the API server returned it, so it is one
	}
	w.show(known)
}

// show makes reads show an object that the API server has returned.
func (w *watched[T]) show(known T) {
	version := number(known.GetResourceVersion())
	w.kind.trim(known)
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.written.objects, func(_ string, o writtenObject[T]) bool { return time.Since(o.at) > writtenLimit })
	if version > w.written.version && !w.hidden(known) { // what it was before it went may be told late
		w.written.objects[known.GetName()] = writtenObject[T]{object: known, version: version, at: time.Now()}
	}
}

// hide makes reads not show an object that the API server said is gone: a watch
// that is broken may tell of it much later.
func (w *watched[T]) hide(name string, uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o, ok := w.written.objects[name]; ok && o.object.GetUID() == uid {
		delete(w.written.objects, name)
	}
	maps.DeleteFunc(w.written.gone, func(name string, o goneObject) bool {
		_, cached := w.cached(name) // then the watch has still to tell of it
		return !cached && time.Since(o.at) > writtenLimit
	})
	w.written.gone[name] = goneObject{uid: uid, at: time.Now()}
}

// hidden reports whether the object was said to be gone. The caller holds w.mu.
func (w *watched[T]) hidden(object T) bool {
	o, ok := w.written.gone[object.GetName()]
	return ok && o.uid == object.GetUID()
}

// observed forgets what the watch has brought. The caller holds w.mu.
func (w *watched[T]) observed(object T, gone bool) {
	if gone && w.hidden(object) { // one of an earlier object of the name says nothing of this one
		delete(w.written.gone, object.GetName())
	}
	w.written.version = max(w.written.version, number(object.GetResourceVersion()))
	o, ok := w.written.objects[object.GetName()]
	// One that a list no longer has is told of as it last was, which may be before
	// it was written.
	if ok && (o.version <= w.written.version || gone && o.object.GetUID() == object.GetUID()) {
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

// writtenObjects returns the written objects by name, and those that are gone.
func (w *watched[T]) writtenObjects() (out map[string]T, gone map[string]goneObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out = make(map[string]T, len(w.written.objects))
	for name, o := range w.written.objects {
		if time.Since(o.at) <= writtenLimit {
			out[name] = o.object
		}
	}
	return out, maps.Clone(w.written.gone)
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
