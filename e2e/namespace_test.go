//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// namespace is a namespace of its own for a test, with a service account that
// may do what the runner's Role says and nothing else.
type namespace struct {
	name string
	// account is the full name of the service account.
	account    string
	kubeconfig string
	token      string
	// server is where the runner finds the API server.
	server string
	rules  []rbacv1.PolicyRule
}

const accountName = "k8s-runner"

// newNamespace makes a namespace that is deleted when the test ends. Its Role has
// more than the runner's where a test says so.
func newNamespace(t testing.TB, more ...rbacv1.PolicyRule) *namespace {
	t.Helper()
	return newNamespaceWith(t, slices.Concat(suite.rules, more))
}

// newNamespaceWith makes one with another Role.
func newNamespaceWith(t testing.TB, rules []rbacv1.PolicyRule) *namespace {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	made, err := suite.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	name := made.Name
	t.Cleanup(func() { removeNamespace(t, name) })
	ns := &namespace{name: name, account: "system:serviceaccount:" + name + ":" + accountName, rules: rules}
	token, err := ns.grant(ctx, rules)
	if err != nil {
		t.Fatalf("making the service account: %v", err)
	}
	ns.token = token
	awaitAccess(t, ns.account, name, rules[0], true)
	return ns.through(t, suite.config.Host, suite.config.CAData)
}

// through is the namespace with another way to the API server.
func (ns *namespace) through(t testing.TB, server string, ca []byte) *namespace {
	t.Helper()
	other := *ns
	other.server = server
	other.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(other.kubeconfig, ns.token, &api.Cluster{Server: server, CertificateAuthorityData: ca}); err != nil {
		t.Fatal(err)
	}
	return &other
}

// grant makes the service account with its Role and returns a token of it.
func (ns *namespace) grant(ctx context.Context, rules []rbacv1.PolicyRule) (token string, err error) {
	meta := metav1.ObjectMeta{Name: accountName, Namespace: ns.name}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	if _, err := suite.admin.CoreV1().ServiceAccounts(ns.name).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	if _, err := suite.admin.RbacV1().Roles(ns.name).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: accountName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: accountName, Namespace: ns.name}},
	}
	if _, err := suite.admin.RbacV1().RoleBindings(ns.name).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	request, err := suite.admin.CoreV1().ServiceAccounts(ns.name).CreateToken(ctx, accountName, &authv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

// awaitAccess waits until the API server knows that an account may do what a rule says in
// a namespace, or may not: it learns of Roles by a watch.
func awaitAccess(t testing.TB, account, namespace string, rule rbacv1.PolicyRule, may bool) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("a change of the Role counts: %+v", rule), func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: account, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
			},
		}}
		review, err := suite.admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != may {
			err = fmt.Errorf("allowed is %t", review.Status.Allowed)
		}
		return err
	})
}

func writeKubeconfig(path, token string, cluster *api.Cluster) error {
	const name = "runner"
	config := api.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[name] = &api.AuthInfo{Token: token}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

// removeNamespace ends the namespace's Pods at once and deletes it. It does
// not wait: the names are unique.
func removeNamespace(t testing.TB, name string) {
	deletePods(t, name)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := suite.admin.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a test may have deleted it
		t.Errorf("deleting the namespace %s: %v", name, err)
	}
}

func deletePods(t testing.TB, namespace string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := suite.admin.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		t.Errorf("deleting the Pods of %s: %v", namespace, err)
	}
}

// pod reads the Pod of workload id from the API server.
func (r *runner) pod(t testing.TB, id string) *corev1.Pod {
	t.Helper()
	pod, err := suite.admin.CoreV1().Pods(r.namespace).Get(t.Context(), "workload-"+id, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the Pod of %s: %v", id, err)
	}
	return pod
}

// podNames lists the Pods that the API server has in the runner's namespace.
func (r *runner) podNames(t testing.TB) []string {
	t.Helper()
	list, err := suite.admin.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("listing the Pods of %s: %v", r.namespace, err)
	}
	names := make([]string, len(list.Items))
	for i, p := range list.Items {
		names[i] = p.Name
	}
	return names
}

// log reads the log of a container, once it has ended.
func (r *runner) containerLog(t testing.TB, id, container string) string {
	t.Helper()
	raw, err := suite.admin.CoreV1().Pods(r.namespace).GetLogs("workload-"+id, &corev1.PodLogOptions{Container: container}).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("reading the log of %s: %v", container, err)
	}
	return string(raw)
}

// requests counts the requests of the runner's service account that the API
// server has logged, by "verb resource".
func (r *runner) requests(t testing.TB) map[string]int {
	t.Helper()
	if *auditLog == "" {
		t.Fatal("-audit-log is not set; make test sets it for the devcluster")
	}
	data, err := os.ReadFile(*auditLog)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := countRequests(data, r.account)
	if err != nil {
		t.Fatal(fmt.Errorf("reading the audit log: %w", err))
	}
	return counts
}
