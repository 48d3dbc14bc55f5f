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

// Pods is a watched cache of the Pods that the runner made in one namespace.
type Pods struct{ *watched[*corev1.Pod] }

// NewPods returns a cache that is empty until Run has filled it.
func NewPods(client kubernetes.Interface, namespace string) (*Pods, error) {
	w, err := watch(client, namespace, kind[*corev1.Pod]{
		plural: "Pods",
		label:  workload.LabelID,
		informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Pods().Informer()
		},
		fresh: func() *corev1.Pod { return &corev1.Pod{} },
		get: func(ctx context.Context, client kubernetes.Interface, namespace, name string) (*corev1.Pod, error) {
			return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		trim: trimPod,
	})
	if err != nil {
		return nil, err
	}
	return &Pods{w}, nil
}

// Get returns the state of workload id. It reports false if there is none.
func (p *Pods) Get(id string) (*workload.State, bool) {
	if pod, ok := p.named(workload.PodName(id)); ok {
		return state(pod), true
	}
	return nil, false
}

// List returns the states of all workloads with all the given labels.
func (p *Pods) List(with map[string]string) []*workload.State {
	pods := p.all(with)
	states := make([]*workload.State, len(pods))
	for i, pod := range pods {
		states[i] = state(pod)
	}
	return states
}

// trimPod keeps of a Pod what state reads, and whether its start is finished.
func trimPod(pod *corev1.Pod) {
	pod.ManagedFields = nil
	pod.OwnerReferences = nil
	pod.Spec = corev1.PodSpec{
		InitContainers: trimContainers(pod.Spec.InitContainers),
		Containers:     trimContainers(pod.Spec.Containers),
		Volumes:        pod.Spec.Volumes,
		NodeName:       pod.Spec.NodeName,

		SchedulingGates: gate(pod.Spec.SchedulingGates),
	}
}

func trimContainers(in []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(in))
	for i, c := range in {
		out[i] = corev1.Container{
			Name: c.Name, Image: c.Image, VolumeMounts: c.VolumeMounts, RestartPolicy: c.RestartPolicy,
		}
	}
	return out
}
