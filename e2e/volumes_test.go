//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// volumes are the claims that the runner lists, as name=key.
func (r *runner) volumes(t *testing.T) (names []string) {
	t.Helper()
	list, err := r.ListVolumes(t.Context(), &runnerv1.ListVolumesRequest{})
	if err != nil {
		t.Fatalf("ListVolumes: %v", err)
	}
	for _, v := range list.GetVolumes() {
		names = append(names, v.GetInstanceId()+"="+v.GetVolumeKey())
	}
	return names
}

func (r *runner) users(t *testing.T, claim string) []string {
	t.Helper()
	list, err := r.ListWorkloadsByVolume(t.Context(), &runnerv1.ListWorkloadsByVolumeRequest{VolumeName: claim})
	if err != nil {
		t.Fatalf("ListWorkloadsByVolume: %v", err)
	}
	return list.GetTargetIds()
}

// seesUsers waits until the runner shows who uses a claim, which another wrote.
func (r *runner) seesUsers(t *testing.T, claim string, want ...string) {
	t.Helper()
	eventually(t, 10*time.Second, "the users of "+claim+" are shown", func() error {
		if diff := cmp.Diff(want, r.users(t, claim)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// TestVolumes walks a volume from its first use to its end: it is listed with its
// user, outlives it, and is no longer listed once it is removed, though a Pod
// still uses it.
func TestVolumes(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	a := newApplier(t, ns, nil)
	first, second := newID(), newID()
	s := newSet(first, "1")
	if err := s.start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	claim := claimOf(first)
	r.seesUsers(t, claim, first)
	if diff := cmp.Diff([]string{claim + "=key-1"}, r.volumes(t)); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	r.await(t, first, "the workload runs", running)
	mount := &runnerv1.TargetMount{Type: "pvc", Source: claim, Destination: "/data"}
	if diff := cmp.Diff([]*runnerv1.TargetMount{mount}, r.inspect(t, first).GetMounts(), protocmp.Transform()); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: first, Force: true}); err != nil {
		t.Fatal(err)
	}
	if users := r.users(t, claim); len(users) > 0 || len(r.volumes(t)) != 1 {
		t.Errorf("the volume of a removed workload has users %v; volumes %v", users, r.volumes(t))
	}

	again := newSet(second, "1")
	again.claims[0].SetName(claim)
	mounts, _ := again.pod.Object["spec"].(map[string]any)["volumes"].([]any)
	mounts[0].(map[string]any)["persistentVolumeClaim"] = map[string]any{"claimName": claim}
	if err := again.start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	r.seesUsers(t, claim, second)
	r.await(t, second, "the second workload runs", running)
	for range 2 { // one that is going already is no error
		if _, err := r.RemoveVolume(t.Context(), &runnerv1.RemoveVolumeRequest{VolumeName: claim}); err != nil {
			t.Fatal(err)
		}
		if left := r.volumes(t); len(left) > 0 {
			t.Errorf("after its removal volumes has %v", left)
		}
	}
	if there, err := suite.admin.CoreV1().PersistentVolumeClaims(ns.name).Get(t.Context(), claim, metav1.GetOptions{}); err != nil || there.DeletionTimestamp == nil {
		t.Errorf("the claim in use is %v, %v", there, err)
	}
	// And nothing begins to use it now.
	third := newSet(newID(), "1")
	third.claims[0].SetName(claim)
	wantDomain(t, third.start(t.Context(), a), workload.FailedPrecondition, "claim_terminating", claim)
	deletePod(t, ns.name, second)
	eventually(t, 30*time.Second, "the claim is gone", func() error {
		list, err := suite.admin.CoreV1().PersistentVolumeClaims(ns.name).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
}

// TestRemoveVolume: absent is no error, what the runner did not make stays.
func TestRemoveVolume(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	newClaim(t, ns.name, "mine", "key-1")
	newClaim(t, ns.name, "foreign", "key-1", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, workload.LabelManagedBy) })
	remove := func(name string) error {
		_, err := r.RemoveVolume(t.Context(), &runnerv1.RemoveVolumeRequest{VolumeName: name, Force: true})
		return err
	}
	wantError(t, remove("foreign"), codes.FailedPrecondition, "CLAIM_NOT_OURS")
	wantError(t, remove(""), codes.InvalidArgument, "VOLUME_NAME_REQUIRED")
	for _, name := range []string{"mine", "mine", "absent", "No Name", "../pods"} {
		if err := remove(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if diff := cmp.Diff([]string{"foreign"}, claimNames(t, ns.name)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if left := r.volumes(t); len(left) > 0 {
		t.Errorf("volumes lists %v", left)
	}
}

// TestRemoveWithVolumes fails halfway, and is made again: the claims go first,
// so that the Pod still tells which they are.
func TestRemoveWithVolumes(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	id := newID()
	s := newSet(id, "1")
	spec, _ := s.pod.Object["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": "theirs", "persistentVolumeClaim": map[string]any{"claimName": "foreign"}})
	newClaim(t, ns.name, "foreign", "key-1", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, workload.LabelManagedBy) })
	if err := s.start(t.Context(), newApplier(t, ns, nil)); err != nil {
		t.Fatal(err)
	}
	r.seesUsers(t, claimOf(id), id)
	r.await(t, id, "the workload runs", running)

	remove := func() error {
		_, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, RemoveVolumes: true})
		return err
	}
	allow(t, ns, rule("", "pods", "get", "list", "watch"))
	awaitAccess(t, ns.account, ns.name, rule("", "pods", "delete"), false)
	wantError(t, remove(), codes.PermissionDenied, "RUNNER_NOT_ALLOWED")
	if diff := cmp.Diff([]string{"foreign"}, claimNames(t, ns.name)); diff != "" {
		t.Errorf("claims after a failure (-want +got):\n%s", diff)
	}
	r.pod(t, id)
	allow(t, ns, suite.rules[0])
	eventually(t, 30*time.Second, "the removal succeeds", remove)
	if err := remove(); err != nil { // one that is going already is no error
		wantError(t, err, codes.NotFound, "WORKLOAD_NOT_FOUND")
	}
	if left := r.volumes(t); len(left) > 0 {
		t.Errorf("volumes lists %v", left)
	}
	eventually(t, 30*time.Second, "the Pod and its claim are gone", func() error {
		list, err := suite.admin.CoreV1().PersistentVolumeClaims(ns.name).List(t.Context(), metav1.ListOptions{})
		if err == nil && (len(list.Items) != 1 || list.Items[0].Name != "foreign" || list.Items[0].DeletionTimestamp != nil) {
			err = fmt.Errorf("there is %v", list.Items)
		}
		return err
	})
	wantError(t, remove(), codes.NotFound, "WORKLOAD_NOT_FOUND")
}

// allow gives the runner these permissions on Pods, and leaves it the others.
func allow(t *testing.T, ns *namespace, pods rbacv1.PolicyRule) {
	t.Helper()
	role, err := suite.admin.RbacV1().Roles(ns.name).Get(t.Context(), accountName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = append([]rbacv1.PolicyRule{pods}, suite.rules[1:]...)
	if _, err := suite.admin.RbacV1().Roles(ns.name).Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestForeignPod: a Pod that only has the name of a workload's is none.
func TestForeignPod(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	r := startRunner(t, ns)
	id := newID()
	pods := suite.admin.CoreV1().Pods(ns.name)
	if _, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: workload.PodName(id)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: id})
	wantError(t, err, codes.NotFound, "WORKLOAD_NOT_FOUND")
	for _, volumes := range []bool{false, true} {
		_, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true, RemoveVolumes: volumes})
		wantError(t, err, codes.NotFound, "WORKLOAD_NOT_FOUND")
	}
	if pod, err := pods.Get(t.Context(), workload.PodName(id), metav1.GetOptions{}); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("the Pod is %v, %v", pod, err)
	}
}

// TestRemoveThroughAnotherReplica: one that has not seen the Pod yet deletes it
// all the same, and does not show it afterwards.
func TestRemoveThroughAnotherReplica(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	r := startRunner(t, ns)
	a := newApplier(t, ns, nil)
	for range 50 {
		id := newID()
		if _, err := a.Start(t.Context(), newSet(id, "1").pod, nil, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			_, err := r.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: id})
			wantError(t, err, codes.NotFound, "WORKLOAD_NOT_FOUND")
		}
	}
}
