package applier

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/agynio/k8s-runner/workload"
)

// Discovery tells which resources the cluster has of an API group's version, such
// as "v1" or "apps/v1".
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

var (
	errNoKind     = errors.New("the cluster has no such kind")
	errNotInSpace = errors.New("its objects are in no namespace")
)

// kinds knows the resource of each kind. Those of the runner itself are known
// already; for another one the cluster is asked when it is first needed.
type kinds struct {
	discovery Discovery

	mu    sync.Mutex
	found map[schema.GroupVersionKind]schema.GroupVersionResource
}

func newKinds(d Discovery) *kinds {
	return &kinds{discovery: d, found: map[schema.GroupVersionKind]schema.GroupVersionResource{}}
}

// builtIn returns the resource of a kind that the runner makes without being told,
// whose fields rendering has checked more strictly than the server would.
func builtIn(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool) {
	resource := ""
	switch gvk.GroupVersion().String() + " " + gvk.Kind {
	case "v1 Pod":
		resource = "pods"
	case "v1 PersistentVolumeClaim":
		resource = "persistentvolumeclaims"
	case "v1 Secret":
		resource = "secrets"
	case "networking.k8s.io/v1 NetworkPolicy":
		resource = "networkpolicies"
	}
	return gvk.GroupVersion().WithResource(resource), resource != ""
}

// resource returns the resource of gvk. What the cluster does not have is asked for
// again the next time.
func (k *kinds) resource(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if resource, known := builtIn(gvk); known {
		return resource, nil
	}
	k.mu.Lock()
	resource, known := k.found[gvk]
	k.mu.Unlock()
	if known {
		return resource, nil
	}
	list, err := k.discovery.ServerResourcesForGroupVersionWithContext(ctx, gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return resource, errNoKind
	}
	if err != nil {
		return resource, err
	}
	for _, r := range list.APIResources {
		if r.Kind != gvk.Kind || strings.Contains(r.Name, "/") { // a part of another one, such as its scale
			continue
		}
		if !r.Namespaced {
			return resource, errNotInSpace
		}
		resource = gvk.GroupVersion().WithResource(r.Name)
		k.mu.Lock()
		k.found[gvk] = resource
		k.mu.Unlock()
		return resource, nil
	}
	return resource, errNoKind
}

// forget makes the cluster be asked again.
func (k *kinds) forget(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	delete(k.found, gvk)
	k.mu.Unlock()
}

// createOptionsOf are those for object. Of a kind that is not the runner's own, a
// field that the server does not know is an error: left out without a word, it may
// be the one that isolates the workload.
func createOptionsOf(object *unstructured.Unstructured) metav1.CreateOptions {
	options := createOptions()
	if _, known := builtIn(object.GroupVersionKind()); !known {
		options.FieldValidation = metav1.FieldValidationStrict
	}
	return options
}

// explainKind is explain for an object of any kind.
func (a *Applier) explainKind(err error, doing string, object *unstructured.Unstructured) error {
	refused := func(format string) error {
		return workload.Errorf(workload.FailedPrecondition, "rejected_by_kubernetes",
			"%s %s: "+format, doing, object.GetName(), object.GetKind(), object.GetAPIVersion()).Because(withoutValues(err))
	}
	switch {
	case errors.Is(err, errNotInSpace):
		return refused("the kind %s of %s is in no namespace, so it can belong to no workload")
	case errors.Is(err, errNoKind), apierrors.IsNotFound(err) && kindOf(err) != "namespaces":
		return refused("the cluster has no kind %s of %s")
	case apierrors.IsMethodNotSupported(err):
		return refused("the cluster takes no new %s of %s")
	case apierrors.IsBadRequest(err) && refuser(err) == "":
		return refused("to the cluster it is no %s of %s")
	}
	return a.explain(err, doing, object.GetName())
}
