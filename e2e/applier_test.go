//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/workload"
)

// transport is a way to the API server that a test bends.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// newApplier returns an applier with the permissions of the runner's Role; bend,
// if not nil, makes its transport of the real one.
func newApplier(t testing.TB, ns *namespace, bend func(http.RoundTripper) transport) *applier.Applier {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", ns.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.UserAgent = workload.FieldManager
	if bend != nil {
		config.Wrap(func(real http.RoundTripper) http.RoundTripper { return bend(real) })
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return applier.New(client, nil, ns.name)
}

// crashes bends a transport so that everything from the n-th write on, from 1,
// is refused as if the process had ended. Of the n-th itself, if sent is true,
// only the reply is lost.
func crashes(n int, sent bool) func(http.RoundTripper) transport {
	var writes atomic.Int32
	var over atomic.Bool
	return func(real http.RoundTripper) transport {
		return func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet && !over.Load() && int(writes.Add(1)) >= n {
				over.Store(true)
				if sent {
					if resp, err := real.RoundTrip(req); err == nil {
						resp.Body.Close()
					}
				}
			}
			if over.Load() {
				return answer(req, http.StatusBadRequest), nil
			}
			return real.RoundTrip(req)
		}
	}
}

// answer is an answer that no server gave, which is no reason to try again.
func answer(req *http.Request, code int) *http.Response {
	return &http.Response{StatusCode: code, Request: req, Body: io.NopCloser(strings.NewReader("")), Header: http.Header{}}
}

// set is a workload with all that can go with it.
type set struct {
	pod           *unstructured.Unstructured
	owned, claims []*unstructured.Unstructured
}

// newSet returns the manifests of the workload id as the request with this
// content has them. Its claim, unless a test renames it, is called data-<id>.
func newSet(id, content string) set {
	labels := map[string]any{
		"app.kubernetes.io/managed-by": "k8s-runner", "agyn.io/workload-id": id, "agyn.dev/managed-by": "agents-orchestrator", "volume_key": "key-1",
	}
	name := workload.PodName(id)
	object := func(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
		fields["apiVersion"], fields["kind"] = apiVersion, kind
		fields["metadata"] = map[string]any{"name": name, "labels": labels}
		return &unstructured.Unstructured{Object: fields}
	}
	pod := object("v1", "Pod", name, map[string]any{"spec": map[string]any{
		"restartPolicy": "Never", "automountServiceAccountToken": false, "terminationGracePeriodSeconds": int64(1),
		"containers": []any{map[string]any{
			"name": "main", "image": "busybox", "command": []any{"sleep", "1000"}, "imagePullPolicy": "IfNotPresent",
			"volumeMounts": []any{map[string]any{"name": "data", "mountPath": "/data"}, map[string]any{"name": "files", "mountPath": "/files"}},
		}},
		"volumes": []any{
			map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": claimOf(id)}},
			map[string]any{"name": "files", "secret": map[string]any{"secretName": name + "-files"}},
		},
	}})
	pod.SetAnnotations(map[string]string{"agyn.io/request-digest": content})
	return set{
		pod: pod,
		owned: []*unstructured.Unstructured{
			object("v1", "Secret", name+"-files", map[string]any{
				"data": map[string]any{"content": base64.StdEncoding.EncodeToString([]byte(content)), "key-" + content: ""},
			}),
			object("networking.k8s.io/v1", "NetworkPolicy", name, map[string]any{
				"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"agyn.io/workload-id": id}}},
			}),
		},
		claims: []*unstructured.Unstructured{object("v1", "PersistentVolumeClaim", claimOf(id), map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
		}})},
	}
}

func (s set) start(ctx context.Context, a *applier.Applier) error {
	_, err := a.Start(ctx, s.pod, s.owned, s.claims)
	return err
}

// wantWhole fails unless the Pod of workload id is there without the gate, and
// owns what the request with this content has, and the claim is nobody's.
func wantWhole(t *testing.T, namespace, id, content string) {
	t.Helper()
	core := suite.admin.CoreV1()
	name := workload.PodName(id)
	pod, err := core.Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || len(pod.Spec.SchedulingGates) > 0 {
		t.Fatalf("the Pod has gates %v, %v", pod.Spec.SchedulingGates, err)
	}
	secret, err := core.Secrets(namespace).Get(t.Context(), name+"-files", metav1.GetOptions{})
	if err != nil || string(secret.Data["content"]) != content || len(secret.Data) != 2 {
		t.Fatalf("the Secret of %s holds %v, %v", content, secret.Data, err)
	}
	policy, err := suite.admin.NetworkingV1().NetworkPolicies(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, owners := range [][]metav1.OwnerReference{secret.OwnerReferences, policy.OwnerReferences} {
		if len(owners) != 1 || owners[0].UID != pod.UID {
			t.Errorf("the Pod %s does not own it alone: %v", pod.UID, owners)
		}
	}
	claim, err := core.PersistentVolumeClaims(namespace).Get(t.Context(), claimOf(id), metav1.GetOptions{})
	if err != nil || len(claim.OwnerReferences) > 0 {
		t.Errorf("the claim is %v, %v", claim.ObjectMeta, err)
	}
}

// wantNothingOwned waits until the namespace has neither Pods, nor Secrets, nor
// policies.
func wantNothingOwned(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, 30*time.Second, "nothing is left", func() error {
		left, err := owned(t.Context(), namespace)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there is %v", left)
		}
		return err
	})
}

// owned lists the Pods, Secrets and policies of a namespace.
func owned(ctx context.Context, namespace string) (names []string, err error) {
	pods, err := suite.admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		names = append(names, "Pod "+p.Name)
	}
	secrets, err := suite.admin.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range secrets.Items {
		names = append(names, "Secret "+s.Name)
	}
	policies, err := suite.admin.NetworkingV1().NetworkPolicies(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, p := range policies.Items {
		names = append(names, "NetworkPolicy "+p.Name)
	}
	return names, nil
}

// claimNames lists the claims that are not going.
func claimNames(t *testing.T, namespace string) (names []string) {
	t.Helper()
	list, err := suite.admin.CoreV1().PersistentVolumeClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		if c.DeletionTimestamp == nil {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// deletePod ends the Pod of workload id at once.
func deletePod(t *testing.T, namespace, id string) {
	t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	err := suite.admin.CoreV1().Pods(namespace).Delete(t.Context(), workload.PodName(id), now)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// wantDomain fails unless err is a domain error with the token and the text.
func wantDomain(t *testing.T, err error, kind workload.Kind, token, says string) {
	t.Helper()
	var e *workload.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Token != token || !strings.Contains(e.Message, says) {
		t.Fatalf("got %v, want %s that says %q", err, token, says)
	}
}

// newClaim makes a claim of the runner with a volume key, changed.
func newClaim(t *testing.T, namespace, name, key string, change ...func(*corev1.PersistentVolumeClaim)) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "k8s-runner", "volume_key": key}},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *newQuantity("1Mi")}
	for _, c := range change {
		c(claim)
	}
	if _, err := suite.admin.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// claimOf is the name of the claim of workload id.
func claimOf(id string) string { return "data-" + id }

func newID() string { return uuid.NewString() }
