// Package catalog holds what a runner offers: flavors (sizes and places for
// workloads), storage classes and capabilities. Parse reads its file and finds
// every fault; Resolve turns the names of a request into what they stand for.
package catalog

import "github.com/agynio/k8s-runner/workload"

// Catalog is what the runner declares to the platform.
type Catalog struct {
	Flavors        []Flavor
	StorageClasses []StorageClass
	// Capabilities are names such as "docker"; nil means all that are
	// implemented.
	Capabilities []string
}

// Flavor is a named size of a workload, with a place for it.
type Flavor struct {
	Name string
	// Default is taken by requests that name no flavor; one at most has it.
	Default bool
	// Deprecated flavors still work.
	Deprecated bool
	// Resources size the main container, SidecarResources each sidecar.
	Resources, SidecarResources workload.Resources
	// Devices are extended resources of the main container by name, such as
	// nvidia.com/gpu: "1".
	Devices map[string]string
	// NodeSelector, Tolerations and the classes choose where the Pod runs.
	NodeSelector  map[string]string
	Tolerations   []Toleration
	RuntimeClass  string
	PriorityClass string
	// SupplementalGroups are group ids of every process.
	SupplementalGroups []int64
}

// Toleration is a toleration of Kubernetes, with the names of its fields.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
	// Seconds is nil for ever.
	Seconds *int64 `json:"tolerationSeconds,omitempty"`
}

// StorageClass is a name for a class of the cluster.
type StorageClass struct {
	Name string
	// ClassName is the cluster's; empty leaves the choice to the cluster.
	ClassName           string
	Default, Deprecated bool
}

// Capabilities that this runner knows.
const (
	// Docker is a Docker daemon beside the main container.
	Docker = "docker"
	// ComputeResources lets a request size its own containers.
	ComputeResources = "compute-resources"
)

// Implementations of Docker.
const (
	DockerRootless   = "rootless"
	DockerPrivileged = "privileged"
	DockerKataQEMU   = "kata-qemu"
	DockerKataFC     = "kata-fc"
)
