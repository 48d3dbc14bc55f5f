package config

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Why a kind can never be allowed. The seal looks at the Pod that templates make,
// and what goes with it has the Pod's namespace, name and end. So a kind is refused
// that makes processes or rights which the seal does not see, or that is no part of
// one workload.
const (
	alwaysAllowed = "is always allowed; leave it out"
	startsPods    = "cannot be allowed: other Pods come of it, which the seal does not see"
	givesRights   = "cannot be allowed: it gives permissions or credentials"
	ofTheCluster  = "cannot be allowed: it is the cluster's, and nothing of one workload"
	rulesAll      = "cannot be allowed: it rules every workload of the namespace"
	bookkeeping   = "cannot be allowed: Kubernetes itself keeps it, for all of the namespace"
)

// refusedGroups are API groups of which every kind is refused.
func refusedGroups() map[string]string {
	return map[string]string{
		"apps": startsPods, "batch": startsPods, "extensions": startsPods, "autoscaling": startsPods,

		"authentication.k8s.io": givesRights, "authorization.k8s.io": givesRights,
		"certificates.k8s.io": givesRights, "rbac.authorization.k8s.io": givesRights,

		"admissionregistration.k8s.io": ofTheCluster, "apiextensions.k8s.io": ofTheCluster,
		"apiregistration.k8s.io": ofTheCluster, "flowcontrol.apiserver.k8s.io": ofTheCluster,
		"internal.apiserver.k8s.io": ofTheCluster, "node.k8s.io": ofTheCluster, "storage.k8s.io": ofTheCluster,
		"storagemigration.k8s.io": ofTheCluster,

		"coordination.k8s.io": bookkeeping, "discovery.k8s.io": bookkeeping,
		"events.k8s.io": bookkeeping, "lifecycle.k8s.io": bookkeeping,
	}
}

// refusedKinds are those of other groups, in lower case and without their versions.
func refusedKinds() map[string]string {
	return map[string]string{
		"/pod": alwaysAllowed, "/secret": alwaysAllowed, "/persistentvolumeclaim": alwaysAllowed,
		"networking.k8s.io/networkpolicy": alwaysAllowed,

		"/podtemplate": startsPods, "/replicationcontroller": startsPods,
		"/serviceaccount": givesRights,
		"/limitrange":     rulesAll, "/resourcequota": rulesAll,
		"/binding": bookkeeping, "/endpoints": bookkeeping, "/event": bookkeeping, "policy/eviction": bookkeeping,

		"/componentstatus": ofTheCluster, "/namespace": ofTheCluster, "/node": ofTheCluster, "/persistentvolume": ofTheCluster,
		"networking.k8s.io/ingressclass": ofTheCluster, "networking.k8s.io/ipaddress": ofTheCluster,
		"networking.k8s.io/servicecidr": ofTheCluster,
		"resource.k8s.io/deviceclass":   ofTheCluster, "resource.k8s.io/devicetaintrule": ofTheCluster,
		"resource.k8s.io/resourcepoolstatusrequest": ofTheCluster, "resource.k8s.io/resourceslice": ofTheCluster,
		"scheduling.k8s.io/priorityclass": ofTheCluster,
	}
}

var kindName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

// kindProblem says why an entry of templates.allowed_kinds cannot be, or "". It
// repeats nothing of the entry.
func kindProblem(entry string) string {
	apiVersion, kind, _ := strings.Cut(entry, " ")
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", apiVersion
	}
	if len(validation.IsDNS1035Label(version)) > 0 || grouped && len(validation.IsDNS1123Subdomain(group)) > 0 || !kindName.MatchString(kind) {
		return "is no apiVersion and kind with a space between, such as v1 ConfigMap"
	}
	if why := refusedGroups()[group]; why != "" {
		return why
	}
	return refusedKinds()[group+"/"+strings.ToLower(kind)]
}
