package render

import (
	"strings"

	"github.com/agynio/k8s-runner/workload"
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
	// Containers holds main first, then the sidecars.
	Containers []Container `json:"containers"`
	// InitContainers includes native sidecars.
	InitContainers []Container `json:"initContainers"`
	Volumes        []Volume    `json:"volumes"`
	DNS            DNS         `json:"dns"`
	// FSGroup owns the volumes, so that a non-root image can write them.
	FSGroup int64 `json:"fsGroup"`
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
	Mounts     []Mount  `json:"mounts"`
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
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// Volume is a volume as a template sees it.
type Volume struct {
	Name string `json:"name"`
	// SizeLimit is a quantity; empty means none.
	SizeLimit  string            `json:"sizeLimit"`
	Properties map[string]string `json:"properties"`
}

// DNS is the Pod's name resolution.
type DNS struct {
	Nameservers []string `json:"nameservers"`
	Searches    []string `json:"searches"`
}

// Settings are the operator's, the same for every workload.
type Settings struct {
	// Namespace is where workloads run.
	Namespace string
	// FSGroup is the group id that owns a Pod's volumes.
	FSGroup int64
}

// DefaultSettings returns the settings of an operator who has none.
func DefaultSettings(namespace string) Settings {
	return Settings{Namespace: namespace, FSGroup: 1000}
}

// NewInput returns what the templates see of spec.
func NewInput(spec *workload.Spec, s Settings) *Input {
	labels := workload.IdentityLabels(spec.ID)
	for k, v := range spec.Labels {
		labels[k] = v
	}
	in := &Input{
		ID:             spec.ID,
		Name:           workload.PodName(spec.ID),
		Namespace:      s.Namespace,
		Labels:         labels,
		Properties:     spec.Properties,
		Containers:     append([]Container{newContainer(&spec.Main, "main")}, newContainers(spec.Sidecars, "sidecar")...),
		InitContainers: newContainers(spec.Inits, "init"),
		DNS:            DNS{Nameservers: spec.DNS.Nameservers, Searches: spec.DNS.Searches},
		FSGroup:        s.FSGroup,
	}
	for _, v := range spec.Volumes {
		in.Volumes = append(in.Volumes, Volume{Name: v.Name, SizeLimit: v.Size, Properties: v.Properties})
	}
	return in
}

func newContainers(cs []workload.Container, role string) []Container {
	out := make([]Container, 0, len(cs))
	for i := range cs {
		out = append(out, newContainer(&cs[i], role))
	}
	return out
}

func newContainer(c *workload.Container, role string) Container {
	out := Container{
		Name:         c.Name,
		Role:         role,
		Image:        c.Image,
		WorkingDir:   c.WorkingDir,
		ReadOnlyRoot: c.ReadOnlyRoot,
		Properties:   c.Properties,
	}
	if c.Restarts {
		out.Role, out.RestartPolicy = "sidecar", "Always"
	}
	if c.Entrypoint != "" {
		out.Command = []string{literal(c.Entrypoint)}
	}
	for _, a := range c.Args {
		out.Args = append(out.Args, literal(a))
	}
	for _, e := range c.Env {
		out.Env = append(out.Env, EnvVar{Name: e.Name, Value: literal(e.Value)})
	}
	for _, m := range c.Mounts {
		out.Mounts = append(out.Mounts, Mount{Name: m.Volume, MountPath: m.Path, ReadOnly: m.ReadOnly})
	}
	return out
}

// literal makes the kubelet pass s on byte for byte: it expands $(NAME) and
// reads $$ as $ in commands, arguments and values
// (k8s.io/kubernetes/third_party/forked/golang/expansion).
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }
