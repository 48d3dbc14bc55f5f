package render

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// kind is a kind of object with its version, such as "v1 Pod".
type kind string

// The kinds that templates may always make; the operator can allow others.
const (
	podKind    kind = "v1 Pod"
	secretKind kind = "v1 Secret"
	claimKind  kind = "v1 PersistentVolumeClaim"
	policyKind kind = "networking.k8s.io/v1 NetworkPolicy"
)

// configMapKind is one of which the operator has some of his own.
const configMapKind kind = "v1 ConfigMap"

func builtIn() []kind { return []kind{policyKind, claimKind, podKind, secretKind} }

func kindOfObject(obj map[string]any) kind {
	return kind(stringAt(obj, "apiVersion") + " " + stringAt(obj, "kind"))
}

func (k kind) gvk() schema.GroupVersionKind {
	apiVersion, name, _ := strings.Cut(string(k), " ")
	return schema.FromAPIVersionAndKind(apiVersion, name)
}

// may reports whether templates may make objects of kind k.
func (k kind) may(s Settings) bool {
	return slices.Contains(builtIn(), k) || slices.Contains(s.AllowedKinds, string(k))
}

// kinds makes the shape of a kind when it is first asked for. It is safe for
// concurrent use.
type kinds struct {
	mu     sync.Mutex
	types  shapes
	byKind map[kind]*shape
	custom *shape
}

func newKinds() *kinds {
	k := &kinds{types: shapes{}, byKind: map[kind]*shape{}}
	text := k.types.of(reflect.TypeFor[string]())
	k.custom = &shape{
		kind: reflect.Struct,
		fields: map[string]*shape{
			"apiVersion": text, "kind": text,
			"metadata": k.types.of(reflect.TypeFor[metav1.ObjectMeta]()),
		},
		item: &shape{kind: reflect.Interface},
	}
	return k
}

// shapeOf returns the shape of name. Of a kind that is not Kubernetes' own only
// the metadata are known; the rest is for the cluster to judge.
func (k *kinds) shapeOf(name kind) *shape {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.byKind[name]; s != nil {
		return s
	}
	object, err := scheme.Scheme.New(name.gvk())
	if err != nil {
		return k.custom // not kept: names can be many
	}
	s := k.types.of(reflect.TypeOf(object))
	k.byKind[name] = s
	return s
}
