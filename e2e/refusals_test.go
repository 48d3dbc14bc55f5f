//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

// TestRefusals: what Kubernetes refuses is told with what an operator looks for,
// without a value, and leaves nothing behind. It keeps the words that
// applier/admission.go knows to those that the API server says.
func TestRefusals(t *testing.T) {
	core := suite.admin.CoreV1()
	limits := func(t *testing.T, ns string, item corev1.LimitRangeItem) {
		l := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
		if _, err := core.LimitRanges(ns).Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		prepare     func(t *testing.T, ns string)
		change      func(spec map[string]any)
		token, says string
	}{
		"RuntimeClass":  {nil, func(spec map[string]any) { spec["runtimeClassName"] = "kata-x" }, "runtime_class_missing", "no RuntimeClass kata-x"},
		"PriorityClass": {nil, func(spec map[string]any) { spec["priorityClassName"] = "high-x" }, "priority_class_missing", "no PriorityClass high-x"},
		"account":       {nil, func(spec map[string]any) { spec["serviceAccountName"] = "x" }, "service_account_missing", "/x"},
		"limits of a container": {func(t *testing.T, ns string) {
			limits(t, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": *newQuantity("1")}})
		}, limitCPU("2"), "limit_range_violated", "maximum cpu usage per Container is 1, but limit is 2"},
		"limits of a claim": {func(t *testing.T, ns string) {
			limits(t, ns, corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{"storage": *newQuantity("1Ki")}})
		}, nil, "limit_range_violated", "maximum storage usage per PersistentVolumeClaim is 1Ki, but request is 1Mi"},
		"a quota of resources": {func(t *testing.T, ns string) {
			q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"limits.memory": *newQuantity("1Gi")}}}
			if _, err := core.ResourceQuotas(ns).Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, nil, "quota_needs_resources", "q: must specify limits.memory for: main"},
		"a policy": {func(t *testing.T, ns string) { denyPods(t, ns) }, nil, "admission_denied", "policy e2e-deny-"},
		"a value that says so": {nil, func(spec map[string]any) {
			spec["volumes"] = append(spec["volumes"].([]any), map[string]any{"name": "v", "hostPath": map[string]any{"path": "/", "type": `s3cr3t admission webhook "evil" denied the request`}})
		}, "rejected_by_kubernetes", "spec.volumes[2].hostPath.type"},
		"a namespace that goes": {func(t *testing.T, ns string) { hold(t, ns) }, nil, "namespace_terminating", "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := newNamespace(t)
			a := newApplier(t, ns, nil)
			if c.prepare != nil {
				c.prepare(t, ns.name)
			}
			// The API server learns of a limit or a policy a moment later.
			eventually(t, 30*time.Second, "it is refused", func() error {
				id := newID()
				s := newSet(id, "1")
				spec := s.pod.Object["spec"].(map[string]any)
				main := spec["containers"].([]any)[0].(map[string]any)
				main["env"] = []any{map[string]any{"name": "TOKEN", "value": "s3cr3t"}}
				if c.change != nil {
					c.change(spec)
				}
				err := s.start(t.Context(), a)
				if err == nil {
					deletePod(t, ns.name, id)
					return errors.New("it is not")
				}
				wantDomain(t, err, workload.FailedPrecondition, c.token, c.says)
				for e := err; e != nil; e = errors.Unwrap(e) {
					if strings.Contains(e.Error(), "s3cr3t") {
						t.Errorf("it tells %v", e)
					}
				}
				return nil
			})
			wantNothingOwned(t, ns.name)
		})
	}
}

func limitCPU(cpu string) func(spec map[string]any) {
	return func(spec map[string]any) {
		spec["containers"].([]any)[0].(map[string]any)["resources"] = map[string]any{"limits": map[string]any{"cpu": cpu}}
	}
}

// denyPods makes a policy that refuses the namespace's Pods, and quotes them.
func denyPods(t *testing.T, ns string) {
	t.Helper()
	client := suite.admin.AdmissionregistrationV1()
	name := "e2e-deny-" + ns
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "false", MessageExpression: "'no ' + object.spec.containers[0].env[0].value"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}}},
	}}
	if _, err := client.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := client.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := client.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Log(err)
		}
	})
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// hold deletes the namespace, and something in it keeps it until the test ends.
func hold(t *testing.T, ns string) {
	t.Helper()
	maps := suite.admin.CoreV1().ConfigMaps(ns)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"e2e.test/held"}}}
	if _, err := maps.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(t, ns, "configmaps", "held") })
	if err := suite.admin.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
