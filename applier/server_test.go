package applier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// server does, in memory, what the API server does and the fake client does
// not: UIDs, versions, preconditions, applies and the patch that lifts a gate.
type server struct {
	*fake.FakeDynamicClient

	mu      sync.Mutex
	version int
	// writes are those that were asked for, such as "create pods".
	writes []string
	// before is called with each write; its error is the answer.
	before func(write string) error
	// asked is called with each request, side by side.
	asked func()
	// force says of each apply whether it took over the fields of others.
	force []bool
	// strict says of each create, by its resource, how it asked for its fields to be
	// checked.
	strict map[string]string
	// things is the resource of the kind Thing of a.example, or "".
	things string
	// discovered are the versions that were asked about.
	discovered []string
}

func newServer(objects ...runtime.Object) (*Applier, *server) {
	s := &server{FakeDynamicClient: fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...), version: 100, things: "things", strict: map[string]string{}}
	s.PrependReactor("*", "*", s.react)
	return New(s, s, "workloads"), s
}

// ServerResourcesForGroupVersionWithContext has a kind of somebody else's, with a
// part of it and one that is in no namespace, in whatever version is asked for.
func (s *server) ServerResourcesForGroupVersionWithContext(_ context.Context, version string) (*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discovered = append(s.discovered, version)
	if s.before != nil {
		if err := s.before("discover " + version); err != nil {
			return nil, err
		}
	}
	if !strings.HasPrefix(version, "a.example/") {
		return nil, apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "", 0, true)
	}
	list := &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{
		{Name: "things/scale", Kind: "Thing", Namespaced: true},
		{Name: "wide", Kind: "Wide"},
	}}
	if s.things != "" {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: s.things, Kind: "Thing", Namespaced: true})
	}
	return list, nil
}

// named is the object called name, or nil.
func (s *server) named(t *testing.T, resource, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := s.get(resourceNamed(resource), name)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return object
}

func resourceNamed(resource string) schema.GroupVersionResource {
	switch resource {
	case "networkpolicies":
		return schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: resource}
	case "things", "thingies":
		return schema.GroupVersionResource{Group: "a.example", Version: "v1", Resource: resource}
	}
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func (s *server) get(resource schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	object, err := s.Tracker().Get(resource, "workloads", name)
	if err != nil {
		return nil, err
	}
	return object.(*unstructured.Unstructured), nil
}

// put stores object as a new version.
func (s *server) put(resource schema.GroupVersionResource, object *unstructured.Unstructured) (bool, runtime.Object, error) {
	s.version++
	object = object.DeepCopy()
	object.SetResourceVersion(strconv.Itoa(s.version))
	object.SetNamespace("workloads")
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
	}
	if _, err := s.get(resource, object.GetName()); err == nil {
		return true, object, s.Tracker().Update(resource, object, "workloads")
	}
	return true, object, s.Tracker().Create(resource, object, "workloads")
}

func (s *server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetVerb() == "get" {
		return false, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	write := action.GetVerb() + " " + action.GetResource().Resource
	if patch, ok := action.(clienttesting.PatchActionImpl); ok && string(patch.Patch) == "{}" {
		write = "read " + action.GetResource().Resource
	}
	s.writes = append(s.writes, write)
	if s.before != nil {
		if err := s.before(write); err != nil {
			return true, nil, err
		}
	}
	resource := action.GetResource()
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		s.strict[resource.Resource] = action.CreateOptions.FieldValidation
		if len(action.CreateOptions.DryRun) > 0 {
			return true, action.GetObject(), nil
		}
		object := action.GetObject().(*unstructured.Unstructured)
		if _, err := s.get(resource, object.GetName()); err == nil {
			return true, nil, apierrors.NewAlreadyExists(resource.GroupResource(), object.GetName())
		}
		return s.put(resource, object)
	case clienttesting.DeleteActionImpl:
		return s.remove(resource, action)
	case clienttesting.PatchActionImpl:
		patch := &unstructured.Unstructured{}
		if err := json.Unmarshal(action.GetPatch(), &patch.Object); err != nil {
			return true, nil, err
		}
		if action.GetPatchType() == types.ApplyPatchType {
			s.force = append(s.force, *action.PatchOptions.Force)
			return s.apply(resource, patch)
		}
		return s.merge(resource, action.Name, patch)
	}
	return true, nil, fmt.Errorf("the server cannot %s", write)
}

func (s *server) remove(resource schema.GroupVersionResource, action clienttesting.DeleteActionImpl) (bool, runtime.Object, error) {
	there, err := s.get(resource, action.Name)
	if err != nil {
		return true, nil, err
	}
	if only := action.DeleteOptions.Preconditions; only != nil &&
		(only.UID != nil && *only.UID != there.GetUID() || only.ResourceVersion != nil && *only.ResourceVersion != there.GetResourceVersion()) {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), action.Name, fmt.Errorf("precondition"))
	}
	return true, nil, s.Tracker().Delete(resource, "workloads", action.Name)
}

// apply replaces what is there, as one manager's apply does.
func (s *server) apply(resource schema.GroupVersionResource, object *unstructured.Unstructured) (bool, runtime.Object, error) {
	there, err := s.get(resource, object.GetName())
	if err != nil {
		return true, nil, err
	}
	object.SetUID(there.GetUID())
	return s.put(resource, object)
}

// merge knows two patches: the one that takes the runner's gate off a Pod, and
// the one that changes nothing.
func (s *server) merge(resource schema.GroupVersionResource, name string, patch *unstructured.Unstructured) (bool, runtime.Object, error) {
	there, err := s.get(resource, name)
	if err != nil {
		return true, nil, err
	}
	if len(patch.Object) == 0 {
		return true, there, nil
	}
	if patch.GetUID() != there.GetUID() {
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "", "field is immutable")})
	}
	if fmt.Sprint(gates(patch)) != "[map[$patch:delete name:agyn.io/dependents]]" {
		return true, nil, fmt.Errorf("the server cannot merge %v", patch.Object)
	}
	there = there.DeepCopy()
	left := slices.DeleteFunc(slices.Clone(gates(there)), func(g any) bool { return g.(map[string]any)["name"] == Gate })
	if err := unstructured.SetNestedSlice(there.Object, left, "spec", "schedulingGates"); err != nil {
		return true, nil, err
	}
	return s.put(resource, there)
}

// change changes an object as somebody else would.
func (s *server) change(t *testing.T, resource, name string, change func(*unstructured.Unstructured)) {
	t.Helper()
	object, err := s.get(resourceNamed(resource), name)
	if err != nil {
		t.Fatal(err)
	}
	object = object.DeepCopy()
	change(object)
	if _, _, err := s.put(resourceNamed(resource), object); err != nil {
		t.Fatal(err)
	}
}

// nth fails all writes from the n-th on, from 1.
func nth(n int, err error) func(string) error {
	return func(string) error {
		if n--; n <= 0 {
			return err
		}
		return nil
	}
}

// object builds an object of the test workload.
func object(apiVersion, kind, name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	o.SetNamespace("workloads")
	o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "k8s-runner"})
	for _, c := range change {
		c(o)
	}
	return o
}

func aSecret(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return object("v1", "Secret", "files", append([]func(*unstructured.Unstructured){func(o *unstructured.Unstructured) {
		o.Object["data"] = map[string]any{"a": secret}
	}}, change...)...)
}

func aPolicy() *unstructured.Unstructured {
	return object("networking.k8s.io/v1", "NetworkPolicy", "fence")
}

func aClaim(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return object("v1", "PersistentVolumeClaim", "data", change...)
}

func aThing() *unstructured.Unstructured { return object("a.example/v1", "Thing", "thing") }

func labelled(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		labels[key] = value
		o.SetLabels(labels)
	}
}

// withGates sets gates of a Pod.
func withGates(names ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		var list []any
		for _, n := range names {
			list = append(list, map[string]any{"name": n})
		}
		o.Object["spec"] = map[string]any{"schedulingGates": list}
	}
}

// start starts the test workload with a Secret, a policy and a claim.
func start(ctx context.Context, a *Applier) ([]*unstructured.Unstructured, error) {
	return a.Start(ctx, pod("digest"), []*unstructured.Unstructured{aSecret(), aPolicy()}, []*unstructured.Unstructured{aClaim()})
}
