package render

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// check decodes obj strictly into the type of its kind: unknown fields, wrong
// types and bad quantities are errors, as are entries of a list that share the
// key by which server-side apply tells them apart.
func check(obj *unstructured.Unstructured) (*corev1.Pod, error) {
	if gvk := obj.GroupVersionKind(); gvk != corev1.SchemeGroupVersion.WithKind("Pod") {
		return nil, fmt.Errorf("a %s is not a kind that a template may make", gvk)
	}
	pod := &corev1.Pod{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, pod, true)
	if err != nil {
		return nil, err
	}
	return pod, errors.Join(checkKeys(&pod.Spec)...)
}

func checkKeys(spec *corev1.PodSpec) []error {
	var problems []error
	unique := func(list string, keys []string) {
		seen := make(map[string]bool, len(keys))
		for _, k := range keys {
			if seen[k] {
				problems = append(problems, fmt.Errorf("%s holds %q twice", list, k))
			}
			seen[k] = true
		}
	}
	unique("spec.volumes", keysOf(spec.Volumes, func(v corev1.Volume) string { return v.Name }))
	containers := append(append([]corev1.Container{}, spec.InitContainers...), spec.Containers...)
	unique("spec.containers and spec.initContainers", keysOf(containers, func(c corev1.Container) string { return c.Name }))
	for _, c := range containers {
		unique("env of container "+c.Name, keysOf(c.Env, func(e corev1.EnvVar) string { return e.Name }))
		unique("volumeMounts of container "+c.Name, keysOf(c.VolumeMounts, func(m corev1.VolumeMount) string { return m.MountPath }))
	}
	return problems
}

func keysOf[T any](items []T, key func(T) string) []string {
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = key(item)
	}
	return keys
}
