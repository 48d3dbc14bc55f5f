//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agynio/k8s-runner/workload"
)

// TestClaimGuard: a claim that is there is used as it is, or not at all (C40).
func TestClaimGuard(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	a := newApplier(t, ns, nil)
	claims := suite.admin.CoreV1().PersistentVolumeClaims(ns.name)
	held := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"e2e.test/held"} }
	t.Cleanup(func() { release(t, ns.name, "persistentvolumeclaims", "going") })
	for name, c := range map[string]struct {
		make  func(name string)
		token string
	}{
		"free": {func(name string) { newClaim(t, ns.name, name, "key-1") }, ""},
		"keyless": {func(name string) {
			newClaim(t, ns.name, name, "", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, "volume_key") })
		}, ""},
		"other": {func(name string) { newClaim(t, ns.name, name, "key-2") }, "claim_key_mismatch"},
		"foreign": {func(name string) {
			newClaim(t, ns.name, name, "key-1", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, workload.LabelManagedBy) })
		}, "claim_not_ours"},
		"going": {func(name string) {
			newClaim(t, ns.name, name, "key-1", held)
			if err := claims.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "claim_terminating"},
		"lost": {func(name string) {
			// The binder sets this where the volume of a claim is gone.
			newClaim(t, ns.name, name, "key-1", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "gone" })
			if _, err := claims.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "the claim is lost", func() error {
				c, err := claims.Get(t.Context(), name, metav1.GetOptions{})
				if err == nil && c.Status.Phase != corev1.ClaimLost {
					err = fmt.Errorf("it is %s", c.Status.Phase)
				}
				return err
			})
		}, "claim_lost"},
	} {
		t.Run(name, func(t *testing.T) {
			c.make(name)
			before, err := claims.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			id := newID()
			s := newSet(id, "1")
			s.claims[0].SetName(name)
			err = s.start(t.Context(), a)
			if c.token == "" {
				if err != nil {
					t.Fatal(err)
				}
				deletePod(t, ns.name, id)
			} else {
				wantDomain(t, err, workload.FailedPrecondition, c.token, "the claim "+name+" ")
			}
			wantNothingOwned(t, ns.name)
			after, err := claims.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || after.UID != before.UID || len(after.OwnerReferences) > 0 || fmt.Sprint(after.Labels) != fmt.Sprint(before.Labels) {
				t.Errorf("the claim became %v, %v", after, err)
			}
		})
	}
}

// release takes the finalizers off an object that a test held, if it is there.
func release(t *testing.T, namespace, resource, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := suite.admin.CoreV1().RESTClient().Patch(types.MergePatchType).Namespace(namespace).Resource(resource).Name(name).
		Body([]byte(`{"metadata":{"finalizers":null}}`)).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("releasing %s %s: %v", resource, name, err)
	}
}

// TestClaimsAreLookedAtFirst: a request that one claim refuses makes no other.
func TestClaimsAreLookedAtFirst(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	newClaim(t, ns.name, "foreign", "key-1", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, workload.LabelManagedBy) })
	s := newSet(newID(), "1")
	foreign := s.claims[0].DeepCopy()
	foreign.SetName("foreign")
	s.claims = append(s.claims, foreign)
	a := newApplier(t, ns, func(real http.RoundTripper) transport {
		return func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/foreign") {
				time.Sleep(200 * time.Millisecond) // the other would be made by then
			}
			return real.RoundTrip(req)
		}
	})
	wantDomain(t, s.start(t.Context(), a), workload.FailedPrecondition, "claim_not_ours", "foreign")
	wantNothingOwned(t, ns.name)
	if diff := cmp.Diff([]string{"foreign"}, claimNames(t, ns.name)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// TestOneClaimOfTwo: two starts at the same time that create one claim both
// succeed (C40).
func TestOneClaimOfTwo(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	a := newApplier(t, ns, nil)
	for i := range 20 {
		group := errgroup.Group{}
		for range 2 {
			s := newSet(newID(), "1")
			s.claims[0].SetName(fmt.Sprintf("data-%d", i))
			group.Go(func() error { return s.start(t.Context(), a) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if claims := claimNames(t, ns.name); len(claims) != 20 {
		t.Errorf("the claims are %v", claims)
	}
}

// TestQuotaOfSecrets: starts that are refused after their Pod was made, each with a
// volume of its own, leave the claim of the first of them at most.
func TestQuotaOfSecrets(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	a := newApplier(t, ns, nil)
	setQuota(t, ns.name, "count/secrets", "0")
	for range 5 {
		err := newSet(newID(), "1").start(t.Context(), a)
		wantDomain(t, err, workload.ResourceExhausted, "quota_exceeded", "the Secret")
		wantNothingOwned(t, ns.name)
	}
	if claims := claimNames(t, ns.name); len(claims) > 1 {
		t.Errorf("the claims are %v", claims)
	}
}

// setQuota makes a quota of a resource in namespace and waits until it counts.
func setQuota(t *testing.T, namespace string, resource corev1.ResourceName, hard string) {
	t.Helper()
	quotas := suite.admin.CoreV1().ResourceQuotas(namespace)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}
	quota.Spec.Hard = corev1.ResourceList{resource: *newQuantity(hard)}
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the quota counts", func() error {
		q, err := quotas.Get(t.Context(), "quota", metav1.GetOptions{})
		if err == nil && len(q.Status.Used) == 0 {
			err = fmt.Errorf("it has no status")
		}
		return err
	})
}

// TestQuotaOfClaims: a used-up quota is told and leaves nothing behind, and a
// claim that is there costs none of it, however often it is used.
func TestQuotaOfClaims(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	a := newApplier(t, ns, nil)
	setQuota(t, ns.name, corev1.ResourcePersistentVolumeClaims, "2")
	named := func(name string) set {
		s := newSet(newID(), "1")
		s.claims[0].SetName(name)
		return s
	}
	for range 5 {
		if err := named("first").start(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if err := named("second").start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := named("first").start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	deletePods(t, ns.name)
	wantNothingOwned(t, ns.name)
	err := named("third").start(t.Context(), a)
	wantDomain(t, err, workload.ResourceExhausted, "quota_exceeded", "the claim third")
	wantNothingOwned(t, ns.name)
	if claims := claimNames(t, ns.name); len(claims) != 2 {
		t.Errorf("the claims are %v", claims)
	}
}
