package cluster

import (
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const id = "00000000-0000-4000-8000-00000000000a"

// aPod is the Pod of the test workload with one container, changed.
func aPod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "workload-" + id, Namespace: "workloads", UID: types.UID("uid"), ResourceVersion: "1",
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "k8s-runner", "agyn.io/workload-id": id},
			Annotations: map[string]string{"agyn.io/request-digest": "digest"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "s3cr3t-value"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}
