package cluster

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/workload"
)

// Pods is a watched cache of the Pods that the runner made in one namespace.
type Pods struct {
	factory  informers.SharedInformerFactory
	lister   listers.PodNamespaceLister
	informer cache.SharedIndexInformer

	mu      sync.Mutex
	waiters map[string]map[*waiter]struct{}
	written written
}

// NewPods returns a cache that is empty until Run has filled it.
func NewPods(client kubernetes.Interface, namespace string) (*Pods, error) {
	selector := labels.SelectorFromSet(labels.Set{workload.LabelManagedBy: workload.ManagedBy}).String()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace),
		informers.WithTransform(trim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }),
	)
	pods := factory.Core().V1().Pods()
	p := &Pods{
		factory:  factory,
		lister:   pods.Lister().Pods(namespace),
		informer: pods.Informer(),
		waiters:  map[string]map[*waiter]struct{}{},
		written:  written{pods: map[string]writtenPod{}},
	}
	if _, err := p.informer.AddEventHandler(p.handler()); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return p, nil
}

// Run watches until ctx ends.
func (p *Pods) Run(ctx context.Context) {
	p.factory.Start(ctx.Done())
	<-ctx.Done()
	p.factory.Shutdown()
}

// WaitForSync returns once the cache holds what the cluster has, or with an
// error when ctx ends before that.
func (p *Pods) WaitForSync(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), p.informer.HasSynced) {
		return fmt.Errorf("reading the Pods of the namespace: %w", context.Cause(ctx))
	}
	return nil
}

// Get returns the state of workload id. It reports false if there is none.
func (p *Pods) Get(id string) (*workload.State, bool) {
	name := workload.PodName(id)
	// What was written is newer than the cache: it leaves when that has it.
	if pod := p.writtenNamed(name); pod != nil {
		return state(pod), true
	}
	if pod, err := p.lister.Get(name); err == nil {
		return state(pod), true
	}
	return nil, false
}

// List returns the states of all workloads with all the given labels.
func (p *Pods) List(with map[string]string) []*workload.State {
	// What was written is read first: it leaves when the cache has it.
	pods := p.writtenPods()
	selector := labels.SelectorFromSet(with)
	cached, err := p.lister.List(selector)
	if err != nil {
		return nil // a lister that reads memory returns none
	}
	states := make([]*workload.State, 0, len(cached)+len(pods))
	for _, pod := range cached {
		if pods[pod.Name] == nil {
			states = append(states, state(pod))
		}
	}
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			states = append(states, state(pod))
		}
	}
	return states
}

// trim keeps of a Pod what state reads, so that the cache stays small.
func trim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	trimPod(pod)
	return pod, nil
}

func trimPod(pod *corev1.Pod) {
	pod.ManagedFields = nil
	pod.OwnerReferences = nil
	pod.Spec = corev1.PodSpec{
		InitContainers: trimContainers(pod.Spec.InitContainers),
		Containers:     trimContainers(pod.Spec.Containers),
		Volumes:        pod.Spec.Volumes,
		NodeName:       pod.Spec.NodeName,
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
