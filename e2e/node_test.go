//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// cordon keeps Pods from starting until the test ends, so that only the API
// server works. Those that the namespace has then are deleted before the node
// is open again and would start them all.
func cordon(t testing.TB, namespace string) {
	t.Helper()
	setUnschedulable(t, "true")
	t.Cleanup(func() {
		deletePods(t, namespace)
		setUnschedulable(t, "false")
	})
}

func setUnschedulable(t testing.TB, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	nodes, err := suite.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("listing the nodes: %v", err)
	}
	patch := []byte(`{"spec":{"unschedulable":` + value + `}}`)
	for _, n := range nodes.Items {
		if _, err := suite.admin.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatalf("setting the node %s unschedulable to %s: %v", n.Name, value, err)
		}
	}
}
