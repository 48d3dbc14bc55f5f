//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

// versioned is a patch that notes a version.
func versioned(version int) layer {
	return layer{workload.TemplatePatches, "versioned", "pod.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {annotations: {version: \"%d\"}}\n", version)}
}

// TestCustomiseEdits edits the ConfigMaps in every way that kubectl can.
func TestCustomiseEdits(t *testing.T) {
	ns := newNamespace(t)
	r, o := startRunner(t, ns), newOperator(t, ns)
	cordon(t, ns.name)
	shipped := digest(r.podOf(t, sleeper()))
	maps := suite.admin.CoreV1().ConfigMaps(ns.name)
	asShipped := func(p *corev1.Pod) bool { return digest(p) == shipped && p.Annotations["version"] == "" }

	t.Run("the last of several counts", func(t *testing.T) {
		var last edit
		for version := range 5 {
			last = o.layOne(t, versioned(version))
		}
		o.loaded(t, last)
		for range 5 {
			if got := r.podOf(t, sleeper()).Annotations["version"]; got != "4" {
				t.Errorf("the Pod has version %q", got)
			}
		}
	})
	t.Run("a ConfigMap that loses its label", func(t *testing.T) {
		m, err := maps.Get(t.Context(), "versioned", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.Labels = nil
		o.apply(t, m)
		r.startedWith(t, "as shipped", asShipped)
		m.Labels = map[string]string{workload.LabelTemplates: workload.TemplatePatches}
		m.ResourceVersion = ""
		o.loaded(t, o.apply(t, m))
	})
	t.Run("a label that is no kind", func(t *testing.T) {
		before := digest(r.podOf(t, sleeper()))
		wrong := o.lay(t, "wrong", "patch", map[string]string{"pod.yaml": "x"})
		if reason := o.rejected(t, wrong); !strings.Contains(reason, `is "patch" and none of values, patches, files`) {
			t.Errorf("the reason is %s", reason)
		}
		if after := digest(r.podOf(t, sleeper())); before == shipped || after != before {
			t.Errorf("the digest was %s and is %s", before, after)
		}
	})
	t.Run("every ConfigMap is deleted", func(t *testing.T) {
		o.remove(t, "wrong", "versioned")
		r.startedWith(t, "as shipped", asShipped)
	})
	if n := strings.Count(r.log.String(), "templates rejected"); n != 1 {
		t.Errorf("one edit was rejected in %d lines", n)
	}
}

// testWithinASecond measures how long after an edit the first start has it, while a
// client starts one workload after another.
func testWithinASecond(t *testing.T, r *runner, o *operator) {
	const edits, limit = 20, 10 * time.Second
	var took []time.Duration
	for version := range edits {
		begin := time.Now()
		e := o.layOne(t, versioned(version))
		eventually(t, limit, "a start has the edit", func() error {
			sent := time.Now()
			if got := r.podOf(t, sleeper()).Annotations["version"]; got != fmt.Sprint(version) {
				return fmt.Errorf("it has version %q", got)
			}
			took = append(took, sent.Sub(begin))
			return nil
		})
		o.loaded(t, e)
	}
	t.Logf("from an edit to the first start that has it, of %d: min %s, median %s, max %s", edits,
		slices.Min(took).Round(time.Millisecond), percentile(took, 50).Round(time.Millisecond), slices.Max(took).Round(time.Millisecond))
}

// TestCustomiseElsewhere: the ConfigMaps are where templates.namespace says, and
// those of the workloads' namespace count for nothing.
func TestCustomiseElsewhere(t *testing.T) {
	ns, elsewhere := newNamespace(t), newNamespace(t)
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: accountName, Namespace: ns.name}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "runner-of-another", Namespace: elsewhere.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: accountName},
		Subjects:   []rbacv1.Subject{subject},
	}
	if _, err := suite.admin.RbacV1().RoleBindings(elsewhere.name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAccess(t, ns.account, elsewhere.name, suite.rules[0], true)
	here, there := newOperator(t, ns), newOperator(t, elsewhere)
	here.layOne(t, layer{workload.TemplateFiles, "broken", "pod.yaml", "{{ .Nope }}"})
	r := startRunner(t, ns, "--templates-namespace", elsewhere.name)
	cordon(t, ns.name)
	there.layAll(t, versioned(7))
	if got := r.podOf(t, sleeper()).Annotations["version"]; got != "7" {
		t.Errorf("the Pod has version %q", got)
	}
}

// TestCustomiseNotAllowed: with a Role that knows no ConfigMaps the shipped
// templates count, and the log says so.
func TestCustomiseNotAllowed(t *testing.T) {
	ns := newNamespaceWith(t, slices.DeleteFunc(slices.Clone(suite.rules), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "configmaps")
	}))
	newOperator(t, ns).layOne(t, versioned(7))
	r := startRunner(t, ns)
	cordon(t, ns.name)
	if pod := r.podOf(t, sleeper()); pod.Annotations["version"] != "" || digest(pod) == "" {
		t.Errorf("the Pod has %v", pod.Annotations)
	}
	if !strings.Contains(r.log.String(), "the Role allows no list of ConfigMaps") {
		t.Errorf("the log has\n%s", r.log)
	}
}
