package workload

import (
	"regexp"
	"strconv"
	"strings"
)

// Labels, annotations and their values that mark what the runner makes. The
// labels are fixed: existing policies and clients select on them.
const (
	LabelManagedBy      = "app.kubernetes.io/managed-by"
	ManagedBy           = "k8s-runner"
	LabelID             = "agyn.io/workload-id"
	LabelFence          = "agyn.dev/managed-by"
	Fence               = "agents-orchestrator"
	LabelWorkloadKey    = "workload_key"
	LabelVolumeKey      = "volume_key"
	AnnotationTouchedAt = "agyn.io/touched-at"
	// AnnotationDigest holds Spec.Digest.
	AnnotationDigest = "agyn.io/request-digest"
	// AnnotationTemplates holds the digest of the template set that made a Pod.
	AnnotationTemplates = "agyn.io/templates-digest"
	// LabelTemplates marks a ConfigMap that an operator lays over the shipped
	// templates. Its value says in which form: whole files that replace the
	// shipped ones or are added, patches of what they make, or values.
	LabelTemplates  = "agyn.io/templates"
	TemplateFiles   = "files"
	TemplatePatches = "patches"
	TemplateValues  = "values"
)

// FieldManager owns every field that the runner writes.
const FieldManager = "k8s-runner"

const podPrefix = "workload-"

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsID reports whether s is a workload id: a UUID in lower case.
func IsID(s string) bool { return uuid.MatchString(s) }

// PodName returns the name of the Pod of workload id.
func PodName(id string) string { return podPrefix + id }

// PullSecretName returns the name of the i-th Secret, from 0, of a workload's
// pull credentials.
func PullSecretName(id string, i int) string {
	if i == 0 {
		return PodName(id) + "-pull"
	}
	return PodName(id) + "-pull-" + strconv.Itoa(i+1)
}

// InlineFilesName returns the name of the Secret of a workload's inline files.
func InlineFilesName(id string) string { return PodName(id) + "-inline-files" }

// ParseRef returns the workload id that ref, an id or the name of a Pod,
// stands for. It reports false if ref can be neither.
func ParseRef(ref string) (id string, ok bool) {
	id = strings.TrimPrefix(ref, podPrefix)
	return id, IsID(id)
}

// IdentityLabels returns the labels that make a Pod the Pod of workload id.
func IdentityLabels(id string) map[string]string {
	return map[string]string{
		LabelManagedBy: ManagedBy,
		LabelID:        id,
		LabelFence:     Fence,
	}
}

// IsReservedLabel reports whether only the runner may choose the value of key.
func IsReservedLabel(key string) bool {
	return key == LabelManagedBy || key == LabelID || key == LabelFence
}
