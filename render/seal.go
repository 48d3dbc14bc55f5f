package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/workload"
)

// seal sets on the Pod what makes it the Pod of this workload, and refuses one
// in which a template decided what is not a template's to decide.
func seal(obj *unstructured.Unstructured, pod *corev1.Pod, in *Input, spec *workload.Spec, templates string) error {
	if len(pod.Spec.Containers) == 0 || pod.Spec.Containers[0].Name != spec.Main.Name {
		return fmt.Errorf("the first container of the Pod must be the main container %q", spec.Main.Name)
	}
	if on := pod.Spec.AutomountServiceAccountToken; on != nil && *on {
		return fmt.Errorf("spec.automountServiceAccountToken: a workload has no access to the API server")
	}
	if len(pod.OwnerReferences) > 0 || len(pod.Finalizers) > 0 {
		return fmt.Errorf("metadata: a Pod has neither owners nor finalizers")
	}
	obj.SetName(in.Name)
	obj.SetNamespace(in.Namespace)
	obj.SetLabels(stamped(obj.GetLabels(), workload.IdentityLabels(spec.ID)))
	obj.SetAnnotations(stamped(obj.GetAnnotations(), map[string]string{
		workload.AnnotationDigest:    spec.Digest,
		workload.AnnotationTemplates: templates,
	}))
	return unstructured.SetNestedField(obj.Object, false, "spec", "automountServiceAccountToken")
}

// stamped returns base with every entry of stamp.
func stamped(base, stamp map[string]string) map[string]string {
	if base == nil {
		base = make(map[string]string, len(stamp))
	}
	for k, v := range stamp {
		base[k] = v
	}
	return base
}
