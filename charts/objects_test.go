package charts

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/lint"
)

// checkObjects checks what was rendered beyond its text.
func checkObjects(t *testing.T, rendered string) {
	t.Helper()
	for _, object := range decode(t, rendered) {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			checkConfigMap(t, o)
		case *appsv1.Deployment:
			checkPod(t, o.Spec.Template)
		case *batchv1.Job:
			checkPod(t, o.Spec.Template)
		case *rbacv1.Role:
			checkRole(t, o)
		case *networkingv1.NetworkPolicy:
			checkRanges(t, o)
		}
	}
}

// decode reads each object as Kubernetes does, and refuses fields that it does not know.
func decode(t *testing.T, rendered string) (objects []runtime.Object) {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for in := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(rendered))); ; {
		document, err := in.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := strict.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) && bytes.Contains(document, []byte("kind: ServiceMonitor")) {
			continue // not Kubernetes' own
		}
		if err != nil {
			t.Errorf("%v\n%s", err, document)
			continue
		}
		objects = append(objects, object)
	}
}

// checkConfigMap lets the runner read its settings and its catalog.
func checkConfigMap(t *testing.T, m *corev1.ConfigMap) {
	t.Helper()
	if text, has := m.Data["config.yaml"]; has {
		c, err := config.Load(config.Sources{Text: []byte(text), Name: m.Name, Environ: []string{"SERVICE_TOKEN=x"}})
		if err == nil {
			err = c.CheckServing()
		}
		if err != nil {
			t.Errorf("the runner does not start with its settings: %v\n%s", err, text)
		}
	}
	if text, has := m.Data["catalog.yaml"]; has {
		if _, faults := catalog.Parse([]byte(text)); len(faults) > 0 {
			t.Errorf("the runner does not start with its catalog: %v", faults)
		}
	}
}

// checkPod wants what the strictest Pod Security level admits, and no writable root.
func checkPod(t *testing.T, template corev1.PodTemplateSpec) {
	t.Helper()
	pod := corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		t.Fatal(err)
	}
	level, err := lint.LevelOf(&unstructured.Unstructured{Object: object})
	if err != nil || level != api.LevelRestricted {
		t.Errorf("the Pod needs the level %s, %v", level, err)
	}
	for _, c := range pod.Spec.Containers {
		if root := c.SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
			t.Errorf("the container %s may write its root", c.Name)
		}
	}
}

// checkRanges does what the API server does with the ranges of a policy (Kubernetes'
// ValidateIPBlock): what is excepted is a part of what it is excepted from.
func checkRanges(t *testing.T, policy *networkingv1.NetworkPolicy) {
	t.Helper()
	for _, rule := range policy.Spec.Egress {
		for _, to := range rule.To {
			if to.IPBlock == nil {
				continue
			}
			_, whole, err := net.ParseCIDR(to.IPBlock.CIDR)
			if err != nil {
				t.Errorf("%s: %v", policy.Name, err)
				continue
			}
			for _, except := range to.IPBlock.Except {
				_, part, err := net.ParseCIDR(except)
				if err != nil {
					t.Errorf("%s: %v", policy.Name, err)
					continue
				}
				of, _ := whole.Mask.Size()
				is, _ := part.Mask.Size()
				if !whole.Contains(part.IP) || is <= of {
					t.Errorf("%s: %s is no part of %s", policy.Name, except, whole)
				}
			}
		}
	}
}

// checkRole wants the rules of which each has been shown to be needed, and after them only
// what templates.allowedKinds adds.
func checkRole(t *testing.T, role *rbacv1.Role) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chart, "files", "role-rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(data, &rules); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) < len(rules) {
		t.Fatalf("the Role has %d rules of %d", len(role.Rules), len(rules))
	}
	if diff := cmp.Diff(rules, role.Rules[:len(rules)]); diff != "" {
		t.Errorf("the Role's rules are others (-needed +has):\n%s", diff)
	}
	for _, more := range role.Rules[len(rules):] {
		if diff := cmp.Diff([]string{"create", "patch"}, more.Verbs); diff != "" {
			t.Errorf("for %v the Role has (-needed +has):\n%s", more.Resources, diff)
		}
	}
}
