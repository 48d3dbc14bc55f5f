package applier

import (
	"context"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Resource returns a client that asks the server nothing for a caller who left,
// as a real one does and the fake one does not.
func (s *server) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resources{s.FakeDynamicClient.Resource(resource), s}
}

type resources struct {
	dynamic.NamespaceableResourceInterface
	s *server
}

func (r resources) Namespace(name string) dynamic.ResourceInterface {
	return forCaller{r.NamespaceableResourceInterface.Namespace(name), r.s}
}

type forCaller struct {
	dynamic.ResourceInterface
	s *server
}

// ask asks unless the caller has left.
func ask[T any](ctx context.Context, s *server, request func() (T, error)) (T, error) {
	if s.asked != nil {
		s.asked()
	}
	if err := ctx.Err(); err != nil {
		var none T
		return none, &url.Error{Op: "ask", Err: err}
	}
	return request()
}

func (c forCaller) Create(ctx context.Context, object *unstructured.Unstructured, o metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	return ask(ctx, c.s, func() (*unstructured.Unstructured, error) { return c.ResourceInterface.Create(ctx, object, o, sub...) })
}

func (c forCaller) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	return ask(ctx, c.s, func() (*unstructured.Unstructured, error) { return c.ResourceInterface.Get(ctx, name, o, sub...) })
}

func (c forCaller) Delete(ctx context.Context, name string, o metav1.DeleteOptions, sub ...string) error {
	_, err := ask(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.ResourceInterface.Delete(ctx, name, o, sub...) })
	return err
}

func (c forCaller) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	return ask(ctx, c.s, func() (*unstructured.Unstructured, error) {
		return c.ResourceInterface.Patch(ctx, name, kind, data, o, sub...)
	})
}

func (c forCaller) Apply(ctx context.Context, name string, object *unstructured.Unstructured, o metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	return ask(ctx, c.s, func() (*unstructured.Unstructured, error) {
		return c.ResourceInterface.Apply(ctx, name, object, o, sub...)
	})
}

// vanish takes the Pod of the test workload away, and what it owns.
func (s *server) vanish(t *testing.T) {
	t.Helper()
	if s.named(t, "pods", podName) != nil {
		s.take(t, "pods", podName)
	}
	s.collect(t)
}

// collect does the garbage collector's work.
func (s *server) collect(t *testing.T) {
	t.Helper()
	var owner types.UID
	if p := s.named(t, "pods", podName); p != nil {
		owner = p.GetUID()
	}
	for resource, name := range map[string]string{"secrets": "files", "networkpolicies": "fence"} {
		if o := s.named(t, resource, name); o != nil && o.GetOwnerReferences()[0].UID != owner {
			s.take(t, resource, name)
		}
	}
}

func (s *server) take(t *testing.T, resource, name string) {
	t.Helper()
	if err := s.Tracker().Delete(resourceNamed(resource), "workloads", name); err != nil {
		t.Error(err)
	}
}
