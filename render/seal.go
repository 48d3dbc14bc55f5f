package render

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agynio/k8s-runner/workload"
)

// sealPod sets on the Pod what makes it the Pod of this workload, and refuses
// one in which a template decided what is not a template's to decide.
func (s *Set) sealPod(obj map[string]any, in *Input, spec *workload.Spec, settings Settings) []fault {
	if faults := append(trespasses(obj, spec.Main.Name), privileges(obj, in, settings)...); len(faults) > 0 {
		return faults
	}
	metadata := madeAt(obj, "metadata")
	metadata["name"], metadata["namespace"] = in.Name, in.Namespace
	maps.Copy(madeAt(metadata, "labels"), identity(in.ID))
	annotations := madeAt(metadata, "annotations")
	annotations[workload.AnnotationDigest] = spec.Digest
	annotations[workload.AnnotationTemplates] = s.digest
	mapAt(obj, "spec")["automountServiceAccountToken"] = false
	return nil
}

// sealOther does the same to an object that goes with the Pod. Its name keeps
// workloads apart; a claim, which outlives them, is one that the request names. No
// label of a request makes it one of the operator's templates.
func sealOther(obj map[string]any, in *Input) []fault {
	faults := others(fieldPath{"metadata"}, mapAt(obj, "metadata"), "name", "namespace", "labels", "annotations")
	if _, has := obj["status"]; has {
		faults = append(faults, fault{fieldPath{"status"}, notForTemplates})
	}
	metadata := madeAt(obj, "metadata")
	name, labels := stringAt(metadata, "name"), identity(in.ID)
	if kindOfObject(obj) == claimKind {
		delete(labels, workload.LabelID)
		delete(mapAt(metadata, "labels"), workload.LabelID)
		if !slices.ContainsFunc(in.Claims, func(c Claim) bool { return c.Name == name }) {
			faults = append(faults, fault{fieldPath{"metadata", "name"}, "must be that of a claim of the request"})
		}
	} else if !in.owns(name) || len(validation.IsDNS1123Subdomain(name)) > 0 {
		faults = append(faults, fault{fieldPath{"metadata", "name"}, "must be that of the Pod, or start with it and a dash, and be one that Kubernetes takes"})
	}
	if kindOfObject(obj) == secretKind && forbiddenSecret(stringAt(obj, "type")) {
		faults = append(faults, fault{fieldPath{"type"}, "is refused: a workload has no access to the API server"})
	}
	if len(faults) > 0 {
		return faults
	}
	metadata["namespace"] = in.Namespace
	delete(mapAt(metadata, "labels"), workload.LabelTemplates)
	maps.Copy(madeAt(metadata, "labels"), labels)
	return nil
}

// forbiddenSecret knows the types into which Kubernetes puts, or from which it
// takes, credentials of its API.
func forbiddenSecret(secretType string) bool {
	return secretType == string(corev1.SecretTypeServiceAccountToken) || secretType == string(corev1.SecretTypeBootstrapToken)
}

func identity(id string) map[string]any {
	labels := make(map[string]any, 3)
	for k, v := range workload.IdentityLabels(id) {
		labels[k] = v
	}
	return labels
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
			// There is a signer of client certificates for the API server,
			// kubernetes.io/kube-apiserver-client-pod; others can be trusted by it.
			for _, credential := range [...]string{"serviceAccountToken", "podCertificate"} {
				if source[credential] != nil {
					faults = append(faults, fault{fieldPath{"spec", "volumes", i, "projected", "sources", j, credential}, noAPI})
				}
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

const notForTemplates = "is not for a template to decide"

// others refuses the keys of m that are not allowed.
func others(path fieldPath, m map[string]any, allowed ...string) []fault {
	var faults []fault
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(allowed, k) {
			faults = append(faults, fault{path.then(k), notForTemplates})
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
