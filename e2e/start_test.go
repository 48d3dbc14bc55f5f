//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/workload"
)

func newQuantity(s string) *resource.Quantity { return new(resource.MustParse(s)) }

// TestCrash ends a start before or after any of its writes (C33, C41): the same
// request completes it, and without that, deleting the Pod leaves nothing but
// the claim.
func TestCrash(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	good := newApplier(t, ns, nil)
	const writes = 5 // Pod, Secret, NetworkPolicy, claim, gate
	for _, again := range []bool{true, false} {
		for n := 1; n <= writes+1; n++ {
			for _, sent := range []bool{false, true} {
				t.Run(fmt.Sprintf("write %d, sent %v, again %v", n, sent, again), func(t *testing.T) {
					id := newID()
					err := newSet(id, "1").start(t.Context(), newApplier(t, ns, crashes(n, sent)))
					if (err == nil) != (n > writes) {
						t.Fatalf("it returns %v", err)
					}
					if again {
						if err := newSet(id, "1").start(t.Context(), good); err != nil {
							t.Fatal(err)
						}
						wantWhole(t, ns.name, id, "1")
					}
					deletePod(t, ns.name, id)
					wantNothingOwned(t, ns.name)
					_, err = suite.admin.CoreV1().PersistentVolumeClaims(ns.name).Get(t.Context(), claimOf(id), metav1.GetOptions{})
					if again && err != nil {
						t.Errorf("the claim: %v", err)
					}
				})
			}
		}
	}
}

// TestGateHolds: no process runs, and no node is chosen, before the gate is
// lifted; then the Pod runs with its Secret and its claim.
func TestGateHolds(t *testing.T) {
	ns := newNamespace(t)
	id := newID()
	if err := newSet(id, "1").start(t.Context(), newApplier(t, ns, crashes(5, false))); err == nil {
		t.Fatal("it succeeds")
	}
	time.Sleep(500 * time.Millisecond) // the scheduler would have taken it
	pod, err := suite.admin.CoreV1().Pods(ns.name).Get(t.Context(), workload.PodName(id), metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName != "" {
		t.Fatalf("the Pod is on node %q, %v", pod.Spec.NodeName, err)
	}
	if err := newSet(id, "1").start(t.Context(), newApplier(t, ns, nil)); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the Pod runs", func() error {
		pod, err := suite.admin.CoreV1().Pods(ns.name).Get(t.Context(), workload.PodName(id), metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s: %v", pod.Status.Phase, pod.Status.Conditions)
		}
		return err
	})
}

// TestLeftovers stops workloads and starts their ids at once with another
// content, many times: the garbage collector takes what was, never what is.
func TestLeftovers(t *testing.T) {
	const ids, rounds, secrets = 4, 8, 20 // enough to keep the collector behind
	ns := newNamespace(t)
	cordon(t, ns.name)
	var met atomic.Int32
	a := newApplier(t, ns, func(real http.RoundTripper) transport {
		return func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Content-Type") == string(types.MergePatchType) {
				met.Add(1) // it looks at what is there
			}
			return real.RoundTrip(req)
		}
	})
	t.Run("ids", func(t *testing.T) {
		for range ids {
			t.Run("id", func(t *testing.T) {
				t.Parallel()
				id := newID()
				for i := range rounds {
					deletePod(t, ns.name, id)
					s := newSet(id, fmt.Sprint(i))
					for n := range secrets {
						more := s.owned[0].DeepCopy()
						more.SetName(fmt.Sprintf("%s-%d", more.GetName(), n))
						s.owned = append(s.owned, more)
					}
					begin := time.Now()
					if err := s.start(t.Context(), a); err != nil {
						t.Fatal(err)
					}
					t.Logf("round %d took %s", i, time.Since(begin))
					wantWhole(t, ns.name, id, fmt.Sprint(i))
				}
				time.Sleep(3 * time.Second) // whatever the collector still does, it has done
				wantWhole(t, ns.name, id, fmt.Sprint(rounds-1))
			})
		}
	})
	if met.Load() == 0 {
		t.Error("no leftover was met")
	}
	t.Logf("leftovers were met %d times", met.Load())
}

// TestLeftoverThatIsHeld: a Secret of an earlier Pod that cannot go yet is waited
// for, and not taken over.
func TestLeftoverThatIsHeld(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	secrets := suite.admin.CoreV1().Secrets(ns.name)
	id := newID()
	name := workload.PodName(id) + "-files"
	leftover, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{"e2e.test/held"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: workload.PodName(id), UID: types.UID(newID())}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- newSet(id, "1").start(t.Context(), newApplier(t, ns, nil)) }()
	time.Sleep(500 * time.Millisecond) // it would have come back
	select {
	case err := <-result:
		t.Errorf("it does not wait: %v", err)
	default:
	}
	if there, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); err != nil || there.UID != leftover.UID || len(there.Data) > 0 {
		t.Errorf("the leftover becomes %v, %v", there, err)
	}
	if _, err := secrets.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	wantWhole(t, ns.name, id, "1")
}

// TestFieldConflict: what somebody else has set stays (C35), and goes with the Pod
// of the start that cannot be.
func TestFieldConflict(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	id := newID()
	if err := newSet(id, "s3cr3t-1").start(t.Context(), newApplier(t, ns, crashes(5, false))); err == nil {
		t.Fatal("it succeeds")
	}
	name := workload.PodName(id) + "-files"
	t.Cleanup(func() { release(t, ns.name, "secrets", name) })
	theirs := applycorev1.Secret(name, ns.name).WithFinalizers("e2e.test/held").WithData(map[string][]byte{"content": []byte("s3cr3t-2")})
	if _, err := suite.admin.CoreV1().Secrets(ns.name).Apply(t.Context(), theirs, metav1.ApplyOptions{FieldManager: "an-operator", Force: true}); err != nil {
		t.Fatal(err)
	}
	err := newSet(id, "s3cr3t-1").start(t.Context(), newApplier(t, ns, nil))
	wantDomain(t, err, workload.Aborted, "field_conflict", "an-operator")
	if strings.Contains(fmt.Sprintf("%+v", err), "s3cr3t") {
		t.Errorf("it tells %v", err)
	}
	secret, err := suite.admin.CoreV1().Secrets(ns.name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || string(secret.Data["content"]) != "s3cr3t-2" {
		t.Errorf("the Secret holds %q, %v", secret.Data, err)
	}
	release(t, ns.name, "secrets", name)
	wantNothingOwned(t, ns.name)
}

// TestOwnFields: what the runner itself once wrote by an update is its own.
func TestOwnFields(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	id := newID()
	if err := newSet(id, "1").start(t.Context(), newApplier(t, ns, crashes(5, false))); err == nil {
		t.Fatal("it succeeds")
	}
	secrets := suite.admin.CoreV1().Secrets(ns.name)
	secret, err := secrets.Get(t.Context(), workload.PodName(id)+"-files", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data["content"] = []byte("2")
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{FieldManager: workload.FieldManager}); err != nil {
		t.Fatal(err)
	}
	if err := newSet(id, "1").start(t.Context(), newApplier(t, ns, nil)); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, ns.name, id, "1")
}

// TestManyReplicas race for one id with two requests: one of the two wins, whole,
// and all who asked for it are told so.
func TestManyReplicas(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	var replicas []*applier.Applier
	for range 10 {
		replicas = append(replicas, newApplier(t, ns, nil))
	}
	for range 5 {
		id := newID()
		outcomes := make([]error, len(replicas))
		group := errgroup.Group{}
		for i, a := range replicas {
			group.Go(func() error {
				outcomes[i] = newSet(id, fmt.Sprint(i%2)).start(t.Context(), a)
				return nil
			})
		}
		_ = group.Wait() // outcomes has the errors
		pod, err := suite.admin.CoreV1().Pods(ns.name).Get(t.Context(), workload.PodName(id), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		winner := pod.Annotations["agyn.io/request-digest"]
		for i, err := range outcomes {
			if fmt.Sprint(i%2) == winner {
				if err != nil {
					t.Errorf("of the winner: %v", err)
				}
				continue
			}
			wantDomain(t, err, workload.AlreadyExists, "workload_exists", pod.Name)
		}
		wantWhole(t, ns.name, id, winner)
	}
}

// TestUndo: what a start that fails has made goes again, though its caller is
// gone, and the claim stays.
func TestUndo(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	ctx, cancel := context.WithCancel(t.Context())
	left := newApplier(t, ns, func(real http.RoundTripper) transport {
		return func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/pods/") {
				cancel()
				return nil, ctx.Err()
			}
			return real.RoundTrip(req)
		}
	})
	if err := newSet(newID(), "1").start(ctx, left); !errors.Is(err, context.Canceled) {
		t.Fatalf("it returns %v", err)
	}
	wantNothingOwned(t, ns.name)
	if claims := claimNames(t, ns.name); len(claims) != 1 {
		t.Errorf("the claims are %v", claims)
	}
}
