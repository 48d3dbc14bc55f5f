package cluster

import (
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// writtenLimit bounds how long a written Pod is shown that the watch never
// brings, because it was deleted while the watch was broken. A caller that is
// told too early that a workload is gone believes it.
const writtenLimit = time.Minute

// written holds the Pods that were written and have not come through the watch
// yet, so that a caller sees its own start without waiting for it.
type written struct {
	pods map[string]writtenPod
	// version is the highest resource version that came through the watch. The
	// API server's versions are numbers that grow over all objects.
	version int64
}

type writtenPod struct {
	pod     *corev1.Pod
	version int64
	at      time.Time
}

// Wrote makes reads show a Pod as the API server returned it, until the watch
// brings it.
func (p *Pods) Wrote(object *unstructured.Unstructured) {
	pod, version := &corev1.Pod{}, number(object.GetResourceVersion())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod); err != nil {
		return // the API server returned it, so it is a Pod
	}
	trimPod(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.written.pods, func(_ string, w writtenPod) bool { return time.Since(w.at) > writtenLimit })
	if version > p.written.version {
		p.written.pods[pod.Name] = writtenPod{pod: pod, version: version, at: time.Now()}
	}
}

// observed forgets what the watch has brought. The caller holds p.mu.
func (p *Pods) observed(pod *corev1.Pod) {
	p.written.version = max(p.written.version, number(pod.ResourceVersion))
	if w, ok := p.written.pods[pod.Name]; ok && w.version <= p.written.version {
		delete(p.written.pods, pod.Name)
	}
}

// writtenNamed returns the written Pod called name, or nil.
func (p *Pods) writtenNamed(name string) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, ok := p.written.pods[name]; ok && time.Since(w.at) <= writtenLimit {
		return w.pod
	}
	return nil
}

// writtenPods returns the written Pods by name.
func (p *Pods) writtenPods() map[string]*corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]*corev1.Pod, len(p.written.pods))
	for name, w := range p.written.pods {
		if time.Since(w.at) <= writtenLimit {
			out[name] = w.pod
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
