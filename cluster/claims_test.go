package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

// aClaim is a claim of the runner with a volume key, changed.
func aClaim(name, key string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "workloads", ResourceVersion: "1",
		Labels: map[string]string{"app.kubernetes.io/managed-by": "k8s-runner", "volume_key": key},
	}}
	for _, c := range change {
		c(claim)
	}
	return claim
}

func without(label string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, label) }
}

func claimGoing(c *corev1.PersistentVolumeClaim) {
	c.DeletionTimestamp, c.Finalizers = ptr(at(1)), []string{"kubernetes.io/pvc-protection"}
}

// withClaims runs test with a watched cache of a cluster that has claims.
func withClaims(t *testing.T, test func(t *testing.T, c *Claims, client *fake.Clientset), claims ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(claims...)
		c, err := NewClaims(client, "workloads")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			c.Run(ctx)
			close(ended)
		}()
		if err := c.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		test(t, c, client)
		cancel()
		<-ended
	})
}

func TestKeys(t *testing.T) {
	withClaims(t, func(t *testing.T, c *Claims, client *fake.Clientset) {
		client.ClearActions()
		if diff := cmp.Diff(map[string]string{"a": "k1", "b": "", "second": "k1"}, c.Keys()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if calls := client.Actions(); len(calls) > 0 {
			t.Errorf("it called %v", calls)
		}
	},
		aClaim("a", "k1"), aClaim("second", "k1"), aClaim("b", ""),
		aClaim("no-key", "", without("volume_key")),
		aClaim("foreign", "k2", without("app.kubernetes.io/managed-by")),
		aClaim("going", "k3", claimGoing),
		aClaim("elsewhere", "k4", func(c *corev1.PersistentVolumeClaim) { c.Namespace = "others" }),
	)
}

// TestOwnClaims: what a caller has created shows, and what it has deleted does
// not, though a Pod may still use it.
func TestOwnClaims(t *testing.T) {
	withClaims(t, func(t *testing.T, c *Claims, client *fake.Clientset) {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(aClaim("new", "k2", func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "5" }))
		if err != nil {
			t.Fatal(err)
		}
		c.Wrote(&unstructured.Unstructured{Object: object})
		if diff := cmp.Diff(map[string]string{"a": "k1", "new": "k2"}, c.Keys()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		start := time.Now()
		if err := c.Deleting(context.Background(), "a", true, func() error {
			_, err := client.CoreV1().PersistentVolumeClaims("workloads").Update(context.Background(), aClaim("a", "k1", claimGoing), metav1.UpdateOptions{})
			return err
		}); err != nil || time.Since(start) != 0 {
			t.Errorf("it returns %v after %v", err, time.Since(start))
		}
		if diff := cmp.Diff(map[string]string{"new": "k2"}, c.Keys()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}, aClaim("a", "k1"))
}

// TestTrimmedClaims hold nothing but what tells them from others.
func TestTrimmedClaims(t *testing.T) {
	claim := aClaim("a", "k1", claimGoing, func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"a": "s3cr3t-value"}
		c.Spec.VolumeName = "s3cr3t-value"
	})
	trimClaim(claim)
	if claim.Labels["volume_key"] != "k1" || claim.DeletionTimestamp == nil || claim.ResourceVersion != "1" || strings.Contains(fmt.Sprintf("%+v", claim), "s3cr3t-value") {
		t.Errorf("it becomes %+v", claim)
	}
}
