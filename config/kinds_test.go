package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/agynio/k8s-runner/render"
)

// TestKindsOfKubernetes looks at every kind that Kubernetes' own client can make:
// what is of the whole cluster is refused, and of the rest all but these. One that
// a later Kubernetes brings has to be judged first.
func TestKindsOfKubernetes(t *testing.T) {
	want := []string{
		"networking.k8s.io/v1 Ingress", "networking.k8s.io/v1beta1 Ingress",
		"policy/v1 PodDisruptionBudget", "policy/v1beta1 PodDisruptionBudget",
		"resource.k8s.io/v1 ResourceClaim", "resource.k8s.io/v1 ResourceClaimTemplate",
		"resource.k8s.io/v1beta1 ResourceClaim", "resource.k8s.io/v1beta1 ResourceClaimTemplate",
		"resource.k8s.io/v1beta2 ResourceClaim", "resource.k8s.io/v1beta2 ResourceClaimTemplate",
		"scheduling.k8s.io/v1alpha3 CompositePodGroup", "scheduling.k8s.io/v1alpha3 PodGroup", "scheduling.k8s.io/v1alpha3 Workload",
		"scheduling.k8s.io/v1beta1 PodGroup", "scheduling.k8s.io/v1beta1 Workload",
		"v1 ConfigMap", "v1 Service",
	}
	var allowed []string
	kinds := ownKinds()
	for kind, namespaced := range kinds {
		if kindProblem(kind) != "" {
			continue
		}
		allowed = append(allowed, kind)
		if !namespaced {
			t.Errorf("%s is in no namespace, and allowed", kind)
		}
	}
	slices.Sort(allowed)
	if diff := cmp.Diff(want, allowed); diff != "" {
		t.Errorf("allowed (-want +got):\n%s", diff)
	}
	if len(kinds) < 100 {
		t.Errorf("only %d kinds were looked at", len(kinds))
	}
}

// ownKinds returns the kinds that the typed client can make, and whether they are
// in a namespace: then the client asks for one.
func ownKinds() map[string]bool {
	namespaced := map[reflect.Type]bool{}
	each := func(of reflect.Type, visit func(reflect.Method)) {
		for i := range of.NumMethod() {
			if m := of.Method(i); m.Type.NumOut() == 1 && m.Type.Out(0).Kind() == reflect.Interface {
				visit(m)
			}
		}
	}
	each(reflect.TypeFor[kubernetes.Interface](), func(group reflect.Method) {
		each(group.Type.Out(0), func(resource reflect.Method) {
			create, can := resource.Type.Out(0).MethodByName("Create")
			if can && create.Type.In(1).Kind() == reflect.Pointer {
				namespaced[create.Type.In(1).Elem()] = resource.Type.NumIn() == 1
			}
		})
	})
	kinds := map[string]bool{}
	for gvk, of := range scheme.Scheme.AllKnownTypes() {
		if in, can := namespaced[of]; can {
			kinds[gvk.GroupVersion().String()+" "+gvk.Kind] = in
		}
	}
	return kinds
}

// TestRefusedKindsSayWhy names the reason, whatever the version and the case.
func TestRefusedKindsSayWhy(t *testing.T) {
	for entry, want := range map[string]string{
		"v1 Pod": alwaysAllowed, "networking.k8s.io/v1 NetworkPolicy": alwaysAllowed,
		"apps/v1 Deployment": startsPods, "batch/v2 Job": startsPods, "v1 ReplicationController": startsPods, "v1 PodTemplate": startsPods,
		"rbac.authorization.k8s.io/v1 RoleBinding": givesRights, "v1 ServiceAccount": givesRights, "v1 serviceaccount": givesRights,
		"certificates.k8s.io/v1 PodCertificateRequest": givesRights,
		"v1 Namespace": ofTheCluster,
		"apiextensions.k8s.io/v1 CustomResourceDefinition": ofTheCluster,
		"v1 ResourceQuota": rulesAll,
		"v1 Event":         bookkeeping, "discovery.k8s.io/v1 EndpointSlice": bookkeeping,
		"v1 ConfigMap": "", "a.example/v1alpha1 Thing": "", "gateway.networking.k8s.io/v1 HTTPRoute": "",
		"a.example/v1 Pod": "",
	} {
		if got := kindProblem(entry); got != want {
			t.Errorf("of %s it says %q, not %q", entry, got, want)
		}
	}
	_, err := load(t, made{inEnv: {"templates.allowed_kinds": "v1 ConfigMap,apps/v1 Deployment"}})
	if err == nil || !strings.Contains(err.Error(), "templates.allowed_kinds[1] (environment K8SRUNNER_TEMPLATES_ALLOWED_KINDS) "+startsPods) {
		t.Errorf("the error is %v", err)
	}
}

// TestPrivilegesAreThoseOfTheSeal: the setting takes what the seal looks for.
func TestPrivilegesAreThoseOfTheSeal(t *testing.T) {
	if diff := cmp.Diff(render.Privileges(), privileges()); diff != "" {
		t.Errorf("privileges (-seal +setting):\n%s", diff)
	}
}

// TestRefusedKindsAreDocumented keeps docs/customising.md true.
func TestRefusedKindsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/customising.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "### Further kinds")
	section, _, _ = strings.Cut(section, "Whatever else you allow")
	for group := range refusedGroups() {
		if !strings.Contains(section, "`"+group+"`") {
			t.Errorf("the group %s is not documented", group)
		}
	}
	for name, why := range refusedKinds() {
		_, kind, _ := strings.Cut(name, "/")
		if why != ofTheCluster && why != alwaysAllowed && !strings.Contains(strings.ToLower(section), kind) {
			t.Errorf("the kind %s is not documented", kind)
		}
	}
	for kind := range ownKinds() {
		_, name, _ := strings.Cut(kind, " ")
		if kindProblem(kind) == "" && !strings.Contains(section, name) && !strings.HasPrefix(kind, "scheduling.k8s.io/") {
			t.Errorf("that %s can be allowed is not documented", kind)
		}
	}
}
