//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/workload"
)

// unfinish makes the Pod of a start that crashed after its Secret, and returns it.
func unfinish(t *testing.T, ns *namespace) *corev1.Pod {
	t.Helper()
	id := newID()
	if err := newSet(id, "1").start(t.Context(), newApplier(t, ns, crashes(5, false))); err == nil {
		t.Fatal("it succeeds")
	}
	pod, err := suite.admin.CoreV1().Pods(ns.name).Get(t.Context(), workload.PodName(id), metav1.GetOptions{})
	if err != nil || len(pod.Spec.SchedulingGates) != 1 || pod.Spec.SchedulingGates[0].Name != applier.Gate {
		t.Fatalf("the Pod has gates %v, %v", pod.Spec.SchedulingGates, err)
	}
	return pod
}

// TestReaper: of two starts that crashed one is made again in time, and becomes a
// workload; the other one is taken away once its grace is over and not before, by
// one of two replicas, and its Secret and policy with it. A Pod that waits for
// somebody else's gate is none of theirs.
func TestReaper(t *testing.T) {
	const grace = 20 * time.Second
	ns := newNamespace(t)
	cordon(t, ns.name)
	pods := suite.admin.CoreV1().Pods(ns.name)
	theirs := newSet(newID(), "1")
	theirs.pod.Object["spec"].(map[string]any)["schedulingGates"] = []any{map[string]any{"name": "e2e.test/other"}}
	if err := theirs.start(t.Context(), newApplier(t, ns, nil)); err != nil {
		t.Fatal(err)
	}
	// First, for on a slow machine they take as long to start as the grace is.
	replicas := []*runner{startRunner(t, ns, "--starts-grace", grace.String()), startRunner(t, ns, "--starts-grace", grace.String())}
	again, left := unfinish(t, ns), unfinish(t, ns)
	replicas[0].wantMetrics(t, "k8s_runner_gated_pods 2", "k8s_runner_reaped_pods_total 0")
	if err := newSet(again.Labels[workload.LabelID], "1").start(t.Context(), newApplier(t, ns, nil)); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*grace, "the unfinished start is gone", func() error {
		_, err := pods.Get(t.Context(), left.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the Pod is there: %w", err)
	})
	if age := time.Since(left.CreationTimestamp.Time); age < grace {
		t.Errorf("it was taken away after %s", age)
	}
	eventually(t, 30*time.Second, "what it owned is gone", func() error {
		names, err := owned(t.Context(), ns.name)
		if err == nil && strings.Contains(fmt.Sprint(names), left.Name) {
			err = fmt.Errorf("there is %v", names)
		}
		return err
	})
	wantWhole(t, ns.name, again.Labels[workload.LabelID], "1")
	if _, err := pods.Get(t.Context(), theirs.pod.GetName(), metav1.GetOptions{}); err != nil {
		t.Errorf("the Pod with somebody else's gate: %v", err)
	}
	eventually(t, metricsLimit, "one replica tells of it", func() error {
		lines, counted := 0, 0
		for _, r := range replicas {
			lines += strings.Count(r.log.String(), `msg="took away a start that nobody finished"`)
			_, text := r.get(t, "/metrics")
			counted += strings.Count(text, "\nk8s_runner_reaped_pods_total 1\n")
		}
		if lines != 1 || counted != 1 {
			return fmt.Errorf("%d lines tell of it, and %d replicas counted it", lines, counted)
		}
		return nil
	})
	for _, r := range replicas {
		if strings.Contains(r.log.String(), "level=warning") {
			t.Errorf("a replica complains\n%s", r.log)
		}
	}
}

// TestReaperAfterAKill: a runner that is killed in the middle of a start leaves
// nothing that the next one does not take away.
func TestReaperAfterAKill(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	hold := newPostHolder(t, "/secrets")
	r := startRunner(t, ns.through(t, hold.URL, hold.ca()))
	req, result := r.startHeld(t, hold)
	_ = r.process.Process.Kill()
	<-r.exited
	r.process = nil
	if err := <-result; err == nil {
		t.Error("the start succeeds")
	}
	hold.letGo()
	if pod := (&runner{namespace: ns.name}).pod(t, req.GetWorkloadId()); len(pod.Spec.SchedulingGates) != 1 {
		t.Errorf("the gates are %v", pod.Spec.SchedulingGates)
	}
	startRunner(t, ns, "--starts-grace", "10s")
	wantNothingOwned(t, ns.name)
}
