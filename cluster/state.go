package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

// state is what a caller can learn from pod.
func state(pod *corev1.Pod) *workload.State {
	s := &workload.State{
		ID:          pod.Labels[workload.LabelID],
		PodName:     pod.Name,
		UID:         string(pod.UID),
		Labels:      pod.Labels,
		Created:     pod.CreationTimestamp.Time,
		Digest:      pod.Annotations[workload.AnnotationDigest],
		Phase:       workload.Phase(pod.Status.Phase),
		Reason:      pod.Status.Reason,
		Message:     pod.Status.Message,
		Terminating: pod.DeletionTimestamp != nil,
		Containers:  containers(pod),
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			s.Ready, s.ReadyChanged = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && s.Reason == "":
			s.Reason, s.Message = c.Reason, c.Message
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			s.Claims = append(s.Claims, v.PersistentVolumeClaim.ClaimName)
		}
	}
	if len(pod.Spec.Containers) > 0 {
		s.Mounts = mounts(pod.Spec.Containers[0].VolumeMounts, pod.Spec.Volumes)
	}
	return s
}

// containers lists init containers, then main, then sidecars; native sidecars,
// which stand among the init containers, come last.
func containers(pod *corev1.Pod) []workload.ContainerState {
	var inits, others, native []workload.ContainerState
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			native = append(native, container(c, workload.RoleSidecar, statuses))
			continue
		}
		inits = append(inits, container(c, workload.RoleInit, statuses))
	}
	for i := range pod.Spec.Containers {
		role := workload.RoleSidecar
		if i == 0 {
			role = workload.RoleMain
		}
		others = append(others, container(&pod.Spec.Containers[i], role, statuses))
	}
	return slices.Concat(inits, others, native)
}

func container(c *corev1.Container, role workload.Role, statuses []corev1.ContainerStatus) workload.ContainerState {
	out := workload.ContainerState{
		Name: c.Name, Role: role, ConfigImage: c.Image, Image: c.Image, Status: workload.Waiting,
	}
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
	if i < 0 {
		return out // not reported yet, or never: an evicted Pod has no statuses
	}
	status := &statuses[i]
	out.RuntimeID, out.Restarts = status.ContainerID, status.RestartCount
	if status.Image != "" {
		out.Image = status.Image
	}
	switch {
	case status.State.Running != nil:
		out.Status = workload.Running
		out.StartedAt = status.State.Running.StartedAt.Time
	case status.State.Terminated != nil:
		end := status.State.Terminated
		out.Status = workload.Terminated
		out.Reason, out.Message, out.ExitCode = end.Reason, end.Message, &end.ExitCode
		out.StartedAt, out.FinishedAt = end.StartedAt.Time, end.FinishedAt.Time
	case status.State.Waiting != nil:
		out.Reason, out.Message = status.State.Waiting.Reason, status.State.Waiting.Message
	}
	return out
}

// mounts keeps the mounts of claims and ephemeral volumes.
func mounts(all []corev1.VolumeMount, volumes []corev1.Volume) []workload.MountState {
	var out []workload.MountState
	for _, m := range all {
		i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			continue
		}
		mount := workload.MountState{Volume: m.Name, Path: m.MountPath, ReadOnly: m.ReadOnly}
		switch v := &volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			mount.Claim = v.PersistentVolumeClaim.ClaimName
		case v.EmptyDir == nil:
			continue
		}
		out = append(out, mount)
	}
	return out
}
