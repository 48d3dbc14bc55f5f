package cluster

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/workload"
)

// kind is what one kind of objects has of its own; T is a pointer such as
// *corev1.Pod.
type kind[T metav1.Object] struct {
	// plural is for messages.
	plural string
	// label is one that an object has, whatever its value, or empty.
	label    string
	informer func(informers.SharedInformerFactory) cache.SharedIndexInformer
	fresh    func() T
	// get asks the API server for one object.
	get func(ctx context.Context, client kubernetes.Interface, namespace, name string) (T, error)
	// trim drops what nobody reads, so that the cache stays small and holds no
	// secret.
	trim func(T)
}

// watched is a cache of the objects of one kind that the runner made in one
// namespace. Beside what the watch has brought it shows what was written.
type watched[T metav1.Object] struct {
	kind      kind[T]
	namespace string
	client    kubernetes.Interface
	factory   informers.SharedInformerFactory
	informer  cache.SharedIndexInformer

	mu      sync.Mutex
	waiters map[string]map[*waiter[T]]struct{}
	written written[T]
}

// watch returns a cache that is empty until Run has filled it.
func watch[T metav1.Object](client kubernetes.Interface, namespace string, kind kind[T]) (*watched[T], error) {
	selector := labels.SelectorFromSet(labels.Set{workload.LabelManagedBy: workload.ManagedBy}).String()
	if kind.label != "" {
		selector += "," + kind.label
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace),
		informers.WithTransform(kind.transform),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }),
	)
	w := &watched[T]{
		kind:      kind,
		namespace: namespace,
		client:    client,
		factory:   factory,
		informer:  kind.informer(factory),
		waiters:   map[string]map[*waiter[T]]struct{}{},
		written:   written[T]{objects: map[string]writtenObject[T]{}, gone: map[string]goneObject{}},
	}
	if err := w.informer.AddIndexers(indexers()); err != nil {
		return nil, fmt.Errorf("indexing the %s: %w", kind.plural, err)
	}
	if _, err := w.informer.AddEventHandler(w.handler()); err != nil {
		return nil, fmt.Errorf("watching the %s: %w", kind.plural, err)
	}
	return w, nil
}

func (k kind[T]) transform(object any) (any, error) {
	if known, ok := object.(T); ok {
		k.trim(known)
	}
	return object, nil
}

// Run watches until ctx ends.
func (w *watched[T]) Run(ctx context.Context) {
	w.factory.Start(ctx.Done())
	<-ctx.Done()
	w.factory.Shutdown()
}

// WaitForSync returns once the cache holds what the cluster has, or with an
// error when ctx ends before that.
func (w *watched[T]) WaitForSync(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced) {
		return fmt.Errorf("reading the %s of the namespace: %w", w.kind.plural, context.Cause(ctx))
	}
	return nil
}

// named returns the object called name.
func (w *watched[T]) named(name string) (T, bool) {
	// What was written is newer than the cache: it leaves when that has it.
	if object, ok := w.writtenNamed(name); ok {
		return object, true
	}
	object, ok := w.cached(name)
	if !ok {
		return object, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return object, !w.hidden(object)
}

// byLabel is the index of the cache by label, as "key=value".
const byLabel = "label"

func indexers() cache.Indexers {
	return cache.Indexers{byLabel: func(item any) (pairs []string, err error) {
		if object, ok := item.(metav1.Object); ok {
			for key, value := range object.GetLabels() {
				pairs = append(pairs, key+"="+value)
			}
		}
		return pairs, nil
	}}
}

// stored returns what the watch has brought that may have all the given labels: the
// fewest that have one of them.
func (w *watched[T]) stored(with map[string]string) (fewest []any) {
	if len(with) == 0 {
		return w.informer.GetStore().List()
	}
	first := true
	for key, value := range with {
		items, err := w.informer.GetIndexer().ByIndex(byLabel, key+"="+value)
		if err != nil {
			return w.informer.GetStore().List()
		}
		if first || len(items) < len(fewest) {
			fewest, first = items, false
		}
	}
	return fewest
}

// all returns the objects with all the given labels.
func (w *watched[T]) all(with map[string]string) []T {
	selector := labels.SelectorFromSet(with)
	// What was written is read first: it leaves when the cache has it.
	pending, gone := w.writtenObjects()
	stored := w.stored(with)
	objects := make([]T, 0, len(stored)+len(pending))
	add := func(object T) {
		if selector.Matches(labels.Set(object.GetLabels())) {
			objects = append(objects, object)
		}
	}
	for _, item := range stored {
		object, ok := item.(T)
		if !ok {
			continue
		}
		if _, replaced := pending[object.GetName()]; replaced {
			continue
		}
		if o, ok := gone[object.GetName()]; ok && o.uid == object.GetUID() {
			continue
		}
		add(object)
	}
	for _, object := range pending {
		add(object)
	}
	return objects
}

// cached returns what the watch has brought of the object called name.
func (w *watched[T]) cached(name string) (object T, ok bool) {
	item, found, err := w.informer.GetStore().GetByKey(w.namespace + "/" + name)
	if err != nil || !found {
		return object, false
	}
	object, ok = item.(T)
	return object, ok
}
