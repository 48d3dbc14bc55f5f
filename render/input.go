package render

import (
	"github.com/agynio/k8s-runner/catalog"
)

// Input is all that a template can see. In templates the fields keep their Go
// names; where a whole value is inserted its keys are the json names, which
// are those of Kubernetes. templates/README.md documents each field.
type Input struct {
	// ID is the workload id.
	ID string `json:"id"`
	// Name is the name of the Pod.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Labels are the caller's and the identity labels.
	Labels map[string]string `json:"labels"`
	// Properties are the request's additional properties.
	Properties map[string]string `json:"properties"`
	// Capabilities are the names that the request lists.
	Capabilities []string `json:"capabilities"`
	Flavor       Flavor   `json:"flavor"`
	// RuntimeClass is the flavor's, or one that a capability needs; it may be empty.
	RuntimeClass string `json:"runtimeClass"`
	// Containers holds main first, then the sidecars.
	Containers []Container `json:"containers"`
	// InitContainers includes native sidecars.
	InitContainers []Container `json:"initContainers"`
	Volumes        []Volume    `json:"volumes"`
	// Claims are those of the volumes, each once.
	Claims []Claim `json:"claims"`
	// InlineFiles is nil if the request has none.
	InlineFiles *InlineFiles `json:"inlineFiles"`
	PullSecrets []PullSecret `json:"pullSecrets"`
	// Docker is nil unless the request asks for it.
	Docker *Docker `json:"docker"`
	DNS    DNS     `json:"dns"`
	// FSGroup owns the volumes, so that a non-root image can write them.
	FSGroup int64 `json:"fsGroup"`
	// RunAsUser is the user id of every process; 0 means the image's own.
	RunAsUser int64 `json:"runAsUser"`
	// Restricted is true if Kubernetes' restricted level has to admit the Pod.
	Restricted bool `json:"restricted"`
	// NetworkPolicy is nil unless the operator wants one for each workload.
	NetworkPolicy *NetworkPolicy `json:"networkPolicy"`
	// Values are the operator's own.
	Values map[string]any `json:"values"`
}

// Flavor is the flavor of a workload without its sizes, which the containers
// have. All of it is empty if there is none.
type Flavor struct {
	Name               string               `json:"name"`
	NodeSelector       map[string]string    `json:"nodeSelector"`
	Tolerations        []catalog.Toleration `json:"tolerations"`
	PriorityClass      string               `json:"priorityClass"`
	SupplementalGroups []int64              `json:"supplementalGroups"`
}

// Container is a container as a template sees it. Strings that Kubernetes
// would expand, in Command, Args and Env, are escaped already.
type Container struct {
	Name string `json:"name"`
	// Role is main, sidecar or init.
	Role       string   `json:"role"`
	Image      string   `json:"image"`
	Command    []string `json:"command"`
	Args       []string `json:"args"`
	Env        []EnvVar `json:"env"`
	WorkingDir string   `json:"workingDir"`
	// Mounts are those of volumes and of inline files.
	Mounts []Mount `json:"mounts"`
	// Capabilities are Linux capabilities to add.
	Capabilities []string `json:"capabilities"`
	// Resources is nil if nothing sizes the container.
	Resources *Resources `json:"resources"`
	// RestartPolicy is Always for a native sidecar, else empty.
	RestartPolicy string `json:"restartPolicy"`
	// ReadOnlyRoot is nil if the request does not say.
	ReadOnlyRoot *bool             `json:"readOnlyRoot"`
	Properties   map[string]string `json:"properties"`
}

// EnvVar is an environment variable in Kubernetes' form.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Mount is a volume mount in Kubernetes' form.
type Mount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	// SubPath is the key of an inline file.
	SubPath  string `json:"subPath,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Resources are quantities by resource, in Kubernetes' form.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// Volume is a volume as a template sees it.
type Volume struct {
	Name string `json:"name"`
	// Claim is the name of its claim; empty for an ephemeral volume.
	Claim string `json:"claim"`
	// SizeLimit is a quantity; empty means none, as for a claim.
	SizeLimit  string            `json:"sizeLimit"`
	Properties map[string]string `json:"properties"`
}

// Claim is a claim as a template sees it.
type Claim struct {
	Name string `json:"name"`
	// Labels are the workload's but for its id, and the volume's own.
	Labels map[string]string `json:"labels"`
	// Size is a quantity.
	Size string `json:"size"`
	// StorageClass is one of the cluster; empty leaves the choice to it.
	StorageClass string            `json:"storageClass"`
	Properties   map[string]string `json:"properties"`
}

// InlineFiles are the files of one Secret.
type InlineFiles struct {
	// Secret is the Secret's name, Volume that of the Pod's volume of it.
	Secret string       `json:"secret"`
	Volume string       `json:"volume"`
	Files  []InlineFile `json:"files"`
}

// InlineFile is a file of a Secret.
type InlineFile struct {
	Path string `json:"path"`
	// Key stands for the path in the Secret, where no path can be a key.
	Key string `json:"key"`
	// Data is the content in base64.
	Data string `json:"data"`
}

// PullSecret is a Secret that opens registries.
type PullSecret struct {
	Name string `json:"name"`
	// Config is a .dockerconfigjson in base64.
	Config string `json:"config"`
}

// Docker is a Docker daemon beside the main container.
type Docker struct {
	// Implementation is rootless, privileged, kata-qemu or kata-fc.
	Implementation string `json:"implementation"`
	Image          string `json:"image"`
	// Resources is nil if the flavor sizes no sidecars.
	Resources *Resources `json:"resources"`
}

// DNS is the Pod's name resolution.
type DNS struct {
	Nameservers []string `json:"nameservers"`
	Searches    []string `json:"searches"`
}

// NetworkPolicy is a policy for the one workload.
type NetworkPolicy struct {
	// EgressCIDRs are all that it reaches beside DNS; empty leaves egress alone.
	EgressCIDRs []string `json:"egressCIDRs"`
}

// Settings are the operator's, the same for every workload.
type Settings struct {
	// Namespace is where workloads run.
	Namespace string
	// FSGroup is the group id that owns a Pod's volumes.
	FSGroup int64
	// ClaimSize is the size of claims for which the request names none.
	ClaimSize string
	// DockerImage and DockerRootlessImage are those of the Docker daemon.
	DockerImage, DockerRootlessImage string
	// RunAsUser is the user id of every process; 0 means the image's own.
	RunAsUser  int64
	Restricted bool
	// NetworkPolicy is nil if workloads get none.
	NetworkPolicy *NetworkPolicy
	// LinuxCapabilities are those that a container may add, AllowedPrivileges
	// what a template may give a Pod beside (Privileges).
	LinuxCapabilities, AllowedPrivileges []string
	// AllowedKinds are those that templates may make beside the Pod, its Secrets,
	// policies and claims, such as "v1 ConfigMap".
	AllowedKinds []string
}
