//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// widgets is the resource of a kind that only a test has. Its name is not the
// plural of its kind.
type widgets struct{ group string }

const (
	widgetResource = "widgetry"
	widgetSchema   = `{"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}`
)

// newWidgets makes a kind Widget, and one called Wide that is in no namespace, until
// the test ends.
func newWidgets(t testing.TB) widgets {
	t.Helper()
	w := widgets{"e2e-" + uuid.NewString() + ".example.com"}
	w.define(t, widgetResource, "Widget", "Namespaced")
	w.define(t, "wides", "Wide", "Cluster")
	return w
}

func (w widgets) define(t testing.TB, plural, kind, scope string) {
	t.Helper()
	client := admin(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "%[1]s.%[2]s"},
		"spec": {
			"group": "%[2]s", "scope": "%[4]s", "names": {"plural": "%[1]s", "kind": "%[3]s"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": %[5]s}}]
		}
	}`, plural, w.group, kind, scope, widgetSchema)
	if err := crd.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, client, crd.GetName()) })
	eventually(t, 30*time.Second, "the cluster has the kind "+kind, func() error {
		list, err := suite.admin.Discovery().ServerResourcesForGroupVersion(w.group + "/v1")
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			if r.Kind == kind {
				return nil
			}
		}
		return fmt.Errorf("it has %v", list.APIResources)
	})
}

// rule lets the runner make Widgets.
func (w widgets) rule() rbacv1.PolicyRule { return rule(w.group, widgetResource, "create", "patch") }

// allowed is the flag that allows them, and what else there is.
func (w widgets) allowed() string {
	version := w.group + "/v1 "
	return "--templates-allowed-kinds=v1 ConfigMap," + version + "Widget," + version + "Wide," + version + "Gadget"
}

// template makes one of a kind of w; spec is its line 4.
func (w widgets) template(kind, spec string) map[string]string {
	return map[string]string{"widget.yaml": "apiVersion: " + w.group + "/v1\nkind: " + kind + "\nmetadata: {name: {{ .Name }}-widget}\nspec: " + spec + "\n"}
}

// remove deletes what a test made in no namespace.
func remove(t testing.TB, client dynamic.ResourceInterface, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting %s: %v", name, err)
	}
}

func admin(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(suite.config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const settingsMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}-settings, labels: {{ .Labels }}}
data: {id: {{ .ID }}}
`

// TestKinds: a ConfigMap and a custom resource are there before the Pod of their
// workload may be scheduled, and go with it.
func TestKinds(t *testing.T) {
	w := newWidgets(t)
	ns := newNamespace(t, rule("", "configmaps", "create", "patch"), w.rule())
	r := startRunner(t, ns, w.allowed())
	cordon(t, ns.name)
	files := w.template("Widget", "{size: 3}")
	files["settings.yaml"] = settingsMap
	ns.lay(t, "kinds", workload.TemplateFiles, files)
	ns.awaitEvent(t, "kinds", "TemplatesLoaded", "")

	freed := r.freed(t)
	req := sleeper()
	req.Labels = map[string]string{workload.LabelTemplates: workload.TemplateFiles} // and yet it is no template
	r.start(t, req)
	pod, name := <-freed, "workload-"+req.GetWorkloadId()
	if pod == nil {
		t.Fatal("no Pod lost its gate")
	}
	all := map[string]dynamic.ResourceInterface{
		name + "-settings": admin(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns.name),
		name + "-widget":   admin(t).Resource(schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: widgetResource}).Namespace(ns.name),
	}
	for name, client := range all {
		made, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if owners := made.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != pod.UID || owners[0].Kind != "Pod" {
			t.Errorf("the owners of %s are %v", name, owners)
		}
		if made.GetLabels()[workload.LabelID] != req.GetWorkloadId() || made.GetLabels()[workload.LabelTemplates] != "" {
			t.Errorf("the labels of %s are %v", name, made.GetLabels())
		}
		if version(t, made.GetResourceVersion()) > version(t, pod.ResourceVersion) {
			t.Errorf("%s came after the Pod had lost its gate", name)
		}
	}
	if _, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: req.GetWorkloadId()}); err != nil {
		t.Fatal(err)
	}
	// The garbage collector looks for new kinds every 30 s.
	eventually(t, 2*time.Minute, "what the Pod owns is gone", func() error {
		for name, client := range all {
			if _, err := client.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is there: %w", name, err)
			}
		}
		return nil
	})
}

// freed returns the first Pod that loses the runner's gate, as it then is.
func (r *runner) freed(t testing.TB) <-chan *corev1.Pod {
	t.Helper()
	watch, err := suite.admin.CoreV1().Pods(r.namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan *corev1.Pod, 1)
	go func() {
		defer close(found)
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && len(pod.Spec.SchedulingGates) == 0 {
				found <- pod
				return
			}
		}
	}()
	t.Cleanup(func() {
		watch.Stop()
		for range found { //nolint:revive // until it ends
		}
	})
	return found
}

// version is a revision of the one store that all kinds of this cluster are in.
func version(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestKindsThatAreRefused: what the cluster or the Role would refuse at every start
// rejects the edit, with its place.
func TestKindsThatAreRefused(t *testing.T) {
	w := newWidgets(t)
	ns := newNamespace(t)
	startRunner(t, ns, w.allowed())

	ns.lay(t, "kinds", workload.TemplateFiles, w.template("Widget", "{size: 3}"))
	ns.awaitEvent(t, "kinds", "TemplatesRejected", "kinds/widget.yaml:1: the cluster would refuse the Widget: runner_not_allowed: "+
		"the Role lets the runner create no Widget of "+w.group+"/v1 in namespace "+ns.name)
	ns.lay(t, "kinds", workload.TemplateFiles, w.template("Gadget", "{}"))
	ns.awaitEvent(t, "kinds", "TemplatesRejected", "the cluster has no kind Gadget of "+w.group+"/v1")
	ns.lay(t, "kinds", workload.TemplateFiles, w.template("Wide", "{}"))
	ns.awaitEvent(t, "kinds", "TemplatesRejected", "the kind Wide of "+w.group+"/v1 is in no namespace")

	role, err := suite.admin.RbacV1().Roles(ns.name).Get(t.Context(), accountName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = append(role.Rules, w.rule())
	if _, err := suite.admin.RbacV1().Roles(ns.name).Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAccess(t, ns.account, ns.name, w.rule(), true)
	ns.lay(t, "kinds", workload.TemplateFiles, w.template("Widget", "{size: big}"))
	ns.awaitEvent(t, "kinds", "TemplatesRejected", "kinds/widget.yaml:4: the cluster would refuse the Widget: spec.size ")
	ns.lay(t, "kinds", workload.TemplateFiles, w.template("Widget", "\n  size: 3\n  sise: 4"))
	ns.awaitEvent(t, "kinds", "TemplatesRejected", "kinds/widget.yaml:6: the cluster would refuse the Widget: spec.sise is an unknown field")
	ns.lay(t, "kinds", workload.TemplateFiles, w.template("Widget", "{size: 4}"))
	ns.awaitEvent(t, "kinds", "TemplatesLoaded", "")
}

// TestDryRunThatTellsNothing: a webhook that cannot be asked, for dry runs alone, is
// no reason to reject an edit. (One that declares that it knows no dry runs can no
// longer be made: Kubernetes refuses it.)
func TestDryRunThatTellsNothing(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	cordon(t, ns.name)
	ns.hinderDryRuns(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
	eventually(t, 30*time.Second, "dry runs fail", func() error {
		_, err := suite.admin.CoreV1().Pods(ns.name).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("the dry run gives %w", err)
		}
		return nil
	})
	ns.lay(t, "annotate", workload.TemplatePatches, map[string]string{"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {a: b}}\n"})
	ns.awaitEvent(t, "annotate", "TemplatesLoaded", "")
	r.startedWith(t, "annotated", func(p *corev1.Pod) bool { return p.Annotations["a"] == "b" })
}

// hinderDryRuns makes every dry run for Pods in the namespace fail, until the test
// ends.
func (ns *namespace) hinderDryRuns(t testing.TB) {
	t.Helper()
	nowhere, fail, none, seconds := "https://127.0.0.1:1/", admissionv1.Fail, admissionv1.SideEffectClassNone, int32(1)
	made, err := suite.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns.name},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "dry-runs.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &nowhere},
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns.name}},
			MatchConditions:   []admissionv1.MatchCondition{{Name: "dry-runs", Expression: "has(request.dryRun) && request.dryRun"}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hooks := admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
	t.Cleanup(func() { remove(t, admin(t).Resource(hooks), made.Name) })
}
