// Package events streams the Kubernetes Events of one namespace: those that are
// there, and then the new ones, with nothing left out or sent twice in between.
package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

// Cache shows workloads as the watch has brought them.
type Cache interface {
	Get(id string) (*workload.State, bool)
}

// Pods are those of the API server.
type Pods interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Pod, error)
}

// Events are those of one namespace.
type Events struct {
	events clientv1.EventInterface
	pods   Pods
	cache  Cache
}

// New returns the events of a namespace. A stream holds a connection of theirs
// for as long as it lasts, so that their client should limit no rate.
func New(events clientv1.EventInterface, pods Pods, cache Cache) *Events {
	return &Events{events: events, pods: pods, cache: cache}
}

// Stream sends the events that meet a request, those that are there in the order
// of their times; an event that changes, such as one that happens again, is sent
// again. Where filters name a Pod and no UID, the events of an earlier Pod of the
// name are left out as long as there is a newer one. It ends with ctx, whose cause
// it returns, with an error of send, or as Unavailable when the API server fails
// for a minute.
func (e *Events) Stream(ctx context.Context, req *workload.EventRequest, send func(workload.EventRecord) error) error {
	if err := check(req.Filters); err != nil {
		return err
	}
	s := &stream{Events: e, req: req, send: send, selector: selector(req.Filters)}
	return s.all(ctx)
}
