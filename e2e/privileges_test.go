//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestPrivileges: what the chart gives the runner is its Role and nothing more, Secrets are
// out of everybody's reach, and a workload has no token at all.
func TestPrivileges(t *testing.T) {
	rel := install(t, defaults())
	r := rel.connect(t)
	id := r.sleeping(t)
	r.await(t, id, "it runs", running)
	if out := r.inside(t, id, "ls -A /var/run/secrets 2>/dev/null; ls -A /run/secrets 2>/dev/null; true"); out != "" {
		t.Errorf("a workload has %s", out)
	}
	t.Run("rules", func(t *testing.T) { testRules(t, rel) })
	t.Run("secrets", func(t *testing.T) { testSecrets(t, rel) })
}

// testRules asks Kubernetes what the runner may do, in its namespaces and in another.
func testRules(t *testing.T, rel *installation) {
	everybody := allowed(t, "system:serviceaccount:"+rel.namespace+":default", "default")
	for namespace, rules := range map[string][]string{
		rel.workloads: verbsOf(suite.rules), rel.namespace: {}, "kube-system": {}, "default": {},
	} {
		got := slices.DeleteFunc(allowed(t, rel.account, namespace), func(verb string) bool { return slices.Contains(everybody, verb) })
		if diff := cmp.Diff(rules, got); diff != "" {
			t.Errorf("in %s the runner may (-needed +may):\n%s", namespace, diff)
		}
	}
}

// allowed lists what an account may do in a namespace.
func allowed(t *testing.T, account, namespace string) []string {
	t.Helper()
	review, err := as(t, account).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, r := range review.Status.ResourceRules {
		verbs = append(verbs, verbsOf([]rbacv1.PolicyRule{{APIGroups: r.APIGroups, Resources: r.Resources, Verbs: r.Verbs, ResourceNames: r.ResourceNames}})...)
	}
	slices.Sort(verbs)
	return verbs
}

// as is a client with the permissions of a service account.
func as(t *testing.T, account string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(suite.config)
	namespace := strings.Split(account, ":")[2]
	config.Impersonate = rest.ImpersonationConfig{
		UserName: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// testSecrets tries to read Secrets as the runner, and with the token of a Pod of the
// workloads' namespace.
func testSecrets(t *testing.T, rel *installation) {
	for _, namespace := range []string{rel.namespace, rel.workloads, "kube-system"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "token-"}, StringData: map[string]string{"token": "s3cr3t"}}
		secret, err := suite.admin.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = suite.admin.CoreV1().Secrets(namespace).Delete(cleanup(t), secret.Name, metav1.DeleteOptions{})
		})
		for _, account := range []string{rel.account, "system:serviceaccount:" + rel.workloads + ":default"} {
			secrets := as(t, account).CoreV1().Secrets(namespace)
			_, getting := secrets.Get(t.Context(), secret.Name, metav1.GetOptions{})
			_, listing := secrets.List(t.Context(), metav1.ListOptions{})
			_, watching := secrets.Watch(t.Context(), metav1.ListOptions{})
			for what, err := range map[string]error{"get": getting, "list": listing, "watch": watching} {
				if !apierrors.IsForbidden(err) {
					t.Errorf("%s may %s Secrets of %s: %v", account, what, namespace, err)
				}
			}
		}
	}
}
