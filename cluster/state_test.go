package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

func ptr[T any](v T) *T { return &v }

// waiting, running and terminated are statuses of a container.
func waiting(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func running(name string, restarts int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, RestartCount: restarts, ContainerID: "containerd://" + name, Image: name + "@1",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(1)}},
	}
}

func terminated(name string, code int32, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, ContainerID: "containerd://" + name, Image: name + "@1",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: at(1), FinishedAt: at(2)}},
	}
}

func at(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func statuses(s ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.ContainerStatuses = s }
}

// withInit adds an init container and its status; Always makes it a native sidecar.
func withInit(name string, policy corev1.ContainerRestartPolicy, s corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		c := corev1.Container{Name: name, Image: name}
		if policy != "" {
			c.RestartPolicy = &policy
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, s)
	}
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func failed(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
	}
}

// example is a Pod and what a caller learns of it, a line for the Pod and one
// for each container.
type example struct {
	pod  *corev1.Pod
	want []string
}

func examples() map[string]example {
	image := func(reason string) example {
		return example{aPod(statuses(waiting("main", reason, "why"))), []string{"Pending", "main MAIN waiting " + reason + " (why)"}}
	}
	return map[string]example{
		"new": {aPod(), []string{"Pending", "main MAIN waiting"}},
		"running": {
			aPod(phase(corev1.PodRunning), statuses(running("main", 0)), condition(corev1.PodReady, corev1.ConditionTrue, "", "")),
			[]string{"Running ready", "main MAIN running from 1"},
		},
		"running and not ready": {
			aPod(phase(corev1.PodRunning), statuses(running("main", 3)), condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "x")),
			[]string{"Running", "main MAIN running from 1, 3 restarts"},
		},
		"going": {
			aPod(phase(corev1.PodRunning), func(p *corev1.Pod) { p.DeletionTimestamp = ptr(at(1)) }),
			[]string{"Running terminating", "main MAIN waiting"},
		},
		"completed": {
			aPod(phase(corev1.PodSucceeded), statuses(terminated("main", 0, "Completed"))),
			[]string{"Succeeded", "main MAIN terminated Completed, exit 0, from 1 to 2"},
		},
		"failed": {
			aPod(phase(corev1.PodFailed), statuses(terminated("main", 7, "Error"))),
			[]string{"Failed", "main MAIN terminated Error, exit 7, from 1 to 2"},
		},

		"C26 image pull":           image("ErrImagePull"),
		"C26 back-off":             image("ImagePullBackOff"),
		"C27 never pulled":         image("ErrImageNeverPull"),
		"C27 invalid image name":   image("InvalidImageName"),
		"C27 config error":         image("CreateContainerConfigError"),
		"a container cannot start": image("RunContainerError"),
		"C28 unschedulable": {
			aPod(condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/1 nodes are available")),
			[]string{"Pending Unschedulable (0/1 nodes are available)", "main MAIN waiting"},
		},
		"C28 scheduled since": {
			aPod(condition(corev1.PodScheduled, corev1.ConditionTrue, "", ""), condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "x")),
			[]string{"Pending", "main MAIN waiting"},
		},

		"C36 init failure": {
			aPod(phase(corev1.PodFailed), withInit("prepare", "", terminated("prepare", 1, "Error")), statuses(waiting("main", "PodInitializing", ""))),
			[]string{"Failed", "prepare INIT terminated Error, exit 1, from 1 to 2", "main MAIN waiting PodInitializing"},
		},
		"C36 init out of memory": {
			aPod(phase(corev1.PodFailed), withInit("prepare", "", terminated("prepare", 137, "OOMKilled"))),
			[]string{"Failed", "prepare INIT terminated OOMKilled, exit 137, from 1 to 2", "main MAIN waiting"},
		},
		"C36 native sidecar killed": {
			aPod(phase(corev1.PodRunning), withInit("proxy", corev1.ContainerRestartPolicyAlways, terminated("proxy", 137, "Error")), statuses(running("main", 0))),
			[]string{"Running", "main MAIN running from 1", "proxy SIDECAR terminated Error, exit 137, from 1 to 2"},
		},

		"C38 evicted": {
			aPod(failed("Evicted", "The node was low on resource: memory.")),
			[]string{"Failed Evicted (The node was low on resource: memory.)", "main MAIN waiting"},
		},
		"C38 out of CPU": {
			aPod(failed("OutOfcpu", "Pod was rejected")), []string{"Failed OutOfcpu (Pod was rejected)", "main MAIN waiting"},
		},
		"C38 evicted before it was scheduled": {
			aPod(failed("Evicted", "why"), condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "x")),
			[]string{"Failed Evicted (why)", "main MAIN waiting"},
		},

		"order": {
			aPod(withInit("native", corev1.ContainerRestartPolicyAlways, running("native", 0)), withInit("second", "", waiting("second", "PodInitializing", "")), func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "side"})
				p.Status.ContainerStatuses = []corev1.ContainerStatus{running("side", 0), running("main", 0)}
			}),
			[]string{"Pending", "second INIT waiting PodInitializing", "main MAIN running from 1", "side SIDECAR running from 1", "native SIDECAR running from 1"},
		},
		"nothing at all": {&corev1.Pod{}, []string{""}},
	}
}

func TestState(t *testing.T) {
	for name, c := range examples() {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(state(c.pod))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// lines describes what a caller learns.
func lines(s *workload.State) []string {
	pod := []string{string(s.Phase)}
	if s.Ready {
		pod = append(pod, "ready")
	}
	if s.Terminating {
		pod = append(pod, "terminating")
	}
	out := []string{strings.Join(append(pod, why(s.Reason, s.Message)...), " ")}
	for _, c := range s.Containers {
		text := append([]string{
			c.Name,
			map[workload.Role]string{workload.RoleMain: "MAIN", workload.RoleSidecar: "SIDECAR", workload.RoleInit: "INIT"}[c.Role],
			map[workload.Status]string{workload.Waiting: "waiting", workload.Running: "running", workload.Terminated: "terminated"}[c.Status],
		}, why(c.Reason, c.Message)...)
		line := strings.Join(text, " ")
		if c.ExitCode != nil {
			line += fmt.Sprintf(", exit %d,", *c.ExitCode)
		}
		if !c.StartedAt.IsZero() {
			line += fmt.Sprintf(" from %d", c.StartedAt.Unix())
		}
		if !c.FinishedAt.IsZero() {
			line += fmt.Sprintf(" to %d", c.FinishedAt.Unix())
		}
		if c.Restarts > 0 {
			line += fmt.Sprintf(", %d restarts", c.Restarts)
		}
		out = append(out, line)
	}
	return out
}

func why(reason, message string) []string {
	switch {
	case reason == "":
		return nil
	case message == "":
		return []string{reason}
	}
	return []string{reason, "(" + message + ")"}
}

// storage is a Pod with volumes of every sort.
func storage() *corev1.Pod {
	return aPod(func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
			{Name: "files", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
			{Name: "unused", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "other"}}},
		}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "data", MountPath: "/data", ReadOnly: true}, {Name: "scratch", MountPath: "/tmp"}, {Name: "files", MountPath: "/etc/x"}, {Name: "nowhere", MountPath: "/n"},
		}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", VolumeMounts: []corev1.VolumeMount{{Name: "unused", MountPath: "/u"}}})
	})
}

func TestStateOfStorage(t *testing.T) {
	got := state(storage())
	mounts := []workload.MountState{{Claim: "claim", Volume: "data", Path: "/data", ReadOnly: true}, {Volume: "scratch", Path: "/tmp"}}
	if diff := cmp.Diff(mounts, got.Mounts); diff != "" {
		t.Errorf("mounts of main (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"claim", "other"}, got.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestStateOfIdentity(t *testing.T) {
	got := state(aPod(statuses(running("main", 0))))
	want := &workload.State{
		ID: id, PodName: "workload-" + id, UID: "uid", Digest: "digest", Phase: "Pending",
		Labels: map[string]string{"app.kubernetes.io/managed-by": "k8s-runner", "agyn.io/workload-id": id},
		Containers: []workload.ContainerState{{
			Name: "main", Role: workload.RoleMain, ConfigImage: "busybox", Image: "main@1", RuntimeID: "containerd://main", Status: workload.Running, StartedAt: time.Unix(1, 0),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTrimKeepsTheState, and keeps no secret in memory.
func TestTrimKeepsTheState(t *testing.T) {
	pods := map[string]*corev1.Pod{"storage": storage()}
	for name, c := range examples() {
		pods[name] = c.pod
	}
	for name, pod := range pods {
		want := state(pod.DeepCopy())
		trimmed := pod.DeepCopy()
		trimPod(trimmed)
		if diff := cmp.Diff(want, state(trimmed)); diff != "" {
			t.Errorf("%s (-whole +trimmed):\n%s", name, diff)
		}
		if strings.Contains(fmt.Sprintf("%+v", trimmed), "s3cr3t-value") {
			t.Errorf("%s: the cache would hold a secret", name)
		}
	}
}
