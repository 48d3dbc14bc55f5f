package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

// Unfinished returns the Pods whose start has not been finished, without those
// that are being deleted.
func (p *Pods) Unfinished() []workload.Unfinished {
	var found []workload.Unfinished
	for _, pod := range p.all(nil) {
		if len(pod.Spec.SchedulingGates) == 0 || pod.DeletionTimestamp != nil {
			continue
		}
		found = append(found, workload.Unfinished{
			Pod: pod.Name, UID: string(pod.UID), Version: pod.ResourceVersion, Created: pod.CreationTimestamp.Time,
		})
	}
	return found
}

// gate keeps of a Pod's gates the runner's own.
func gate(gates []corev1.PodSchedulingGate) []corev1.PodSchedulingGate {
	ours := corev1.PodSchedulingGate{Name: workload.Gate}
	if slices.Contains(gates, ours) {
		return []corev1.PodSchedulingGate{ours}
	}
	return nil
}
