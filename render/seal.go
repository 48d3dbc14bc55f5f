package render

import (
	"maps"
	"slices"

	"github.com/agynio/k8s-runner/workload"
)

// seal sets on the Pod what makes it the Pod of this workload, and refuses one
// in which a template decided what is not a template's to decide.
func (s *Set) seal(obj map[string]any, in *Input, spec *workload.Spec) []fault {
	if faults := trespasses(obj, spec.Main.Name); len(faults) > 0 {
		return faults
	}
	metadata := madeAt(obj, "metadata")
	metadata["name"], metadata["namespace"] = in.Name, in.Namespace
	labels := madeAt(metadata, "labels")
	for k, v := range workload.IdentityLabels(spec.ID) {
		labels[k] = v
	}
	annotations := madeAt(metadata, "annotations")
	annotations[workload.AnnotationDigest] = spec.Digest
	annotations[workload.AnnotationTemplates] = s.digest
	mapAt(obj, "spec")["automountServiceAccountToken"] = false
	return nil
}

// trespasses finds what only the runner or the cluster may decide.
func trespasses(pod map[string]any, mainName string) []fault {
	const noAPI = "is refused: a workload has no access to the API server"
	spec := mapAt(pod, "spec")
	// No owner, no finalizer, nothing that the API server sets.
	faults := slices.Concat(
		others(nil, pod, "apiVersion", "kind", "metadata", "spec"),
		others(fieldPath{"metadata"}, mapAt(pod, "metadata"), "name", "namespace", "labels", "annotations"),
	)
	if firstName(spec) != mainName {
		faults = append(faults, fault{fieldPath{"spec", "containers", 0, "name"}, "must be that of the main container, which comes first"})
	}
	if spec["automountServiceAccountToken"] == true {
		faults = append(faults, fault{fieldPath{"spec", "automountServiceAccountToken"}, noAPI})
	}
	for i, v := range entries(spec["volumes"]) {
		for j, source := range entries(mapAt(v, "projected")["sources"]) {
			if source["serviceAccountToken"] != nil {
				faults = append(faults, fault{fieldPath{"spec", "volumes", i, "projected", "sources", j, "serviceAccountToken"}, noAPI})
			}
		}
	}
	return faults
}

func firstName(spec map[string]any) string {
	for _, c := range entries(spec["containers"]) {
		return stringAt(c, "name")
	}
	return ""
}

// others refuses the keys of m that are not allowed.
func others(path fieldPath, m map[string]any, allowed ...string) []fault {
	var faults []fault
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(allowed, k) {
			faults = append(faults, fault{path.then(k), "is not for a template to decide"})
		}
	}
	return faults
}

// madeAt is the map at key, made if it is not there.
func madeAt(m map[string]any, key string) map[string]any {
	out := mapAt(m, key)
	if out == nil {
		out = map[string]any{}
		m[key] = out
	}
	return out
}
