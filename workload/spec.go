package workload

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Spec is a workload as a caller asked for it, with its defaults filled in. Its
// JSON is what the Digest is made of: a field that is added here, or to a part
// of it, needs a json tag with omitempty, or running Pods would be of requests
// that nobody can repeat.
type Spec struct {
	// ID is a UUID in lower case.
	ID string
	// Main comes first in the Pod.
	Main     Container
	Sidecars []Container
	// Inits run one after the other before Main; a native sidecar among them
	// keeps running.
	Inits   []Container
	Volumes []Volume
	DNS     DNS
	// Labels are the caller's, from both places where a request may carry them.
	Labels map[string]string
	// Properties are the request's additional properties, for templates.
	Properties map[string]string
	// Flavor names an entry of the catalog; empty means its default.
	Flavor string
	// Capabilities are names of the catalog, such as "docker".
	Capabilities []string
	// InlineFiles holds file contents by absolute path. They are secret.
	InlineFiles map[string][]byte
	// PullCredentials are secret.
	PullCredentials []PullCredential
	// Digest is the SHA-256 of the whole request in hexadecimal. Two starts
	// of one id are the same start exactly if their digests are equal.
	Digest string
}

// Containers yields every container with the path of its field in a request.
func (s *Spec) Containers() iter.Seq2[string, *Container] {
	return func(yield func(string, *Container) bool) {
		if !yield("main", &s.Main) {
			return
		}
		for i := range s.Sidecars {
			if !yield(fmt.Sprintf("sidecars[%d]", i), &s.Sidecars[i]) {
				return
			}
		}
		for i := range s.Inits {
			if !yield(fmt.Sprintf("init_containers[%d]", i), &s.Inits[i]) {
				return
			}
		}
	}
}

// masked stands for a secret value.
const masked = "(masked)"

// Masked returns a copy of s without secret values: those of variables, of
// inline files and passwords. It has the Digest of s.
func (s *Spec) Masked() *Spec {
	out := *s
	out.Main.Env = maskedEnv(s.Main.Env)
	out.Sidecars, out.Inits = slices.Clone(s.Sidecars), slices.Clone(s.Inits)
	for _, list := range [...][]Container{out.Sidecars, out.Inits} {
		for i := range list {
			list[i].Env = maskedEnv(list[i].Env)
		}
	}
	out.InlineFiles = maps.Clone(s.InlineFiles)
	for path := range out.InlineFiles {
		out.InlineFiles[path] = []byte(masked)
	}
	out.PullCredentials = slices.Clone(s.PullCredentials)
	for i := range out.PullCredentials {
		out.PullCredentials[i].Password = masked
	}
	return &out
}

func maskedEnv(env []EnvVar) []EnvVar {
	env = slices.Clone(env)
	for i := range env {
		if env[i].Value != "" {
			env[i].Value = masked
		}
	}
	return env
}

// Container is one container of a Spec.
type Container struct {
	Name  string
	Image string
	// Entrypoint is one path; empty means the image's own.
	Entrypoint string
	Args       []string
	// Env has each name once.
	Env        []EnvVar
	WorkingDir string
	Mounts     []Mount
	// Capabilities are Linux capabilities to add, such as NET_ADMIN, in the
	// order of the request, which may repeat one.
	Capabilities []string
	// InlineFiles are paths of Spec.InlineFiles that appear in this container.
	InlineFiles []string
	// Resources is nil if the request has none.
	Resources *Resources
	// Properties are the container's additional properties, for templates.
	Properties map[string]string
	// Restarts marks an init container as a native sidecar.
	Restarts bool
	// ReadOnlyRoot is nil if the request does not say.
	ReadOnlyRoot *bool
}

// EnvVar is an environment variable. Values may be secret.
type EnvVar struct{ Name, Value string }

// Mount is a place of a volume in a container.
type Mount struct {
	Volume string
	// Path is absolute and clean.
	Path     string
	ReadOnly bool
}

// VolumeKind says how long a volume lives.
type VolumeKind int

const (
	// Ephemeral volumes live and die with the workload.
	Ephemeral VolumeKind = iota + 1
	// Named volumes are claims and outlive it.
	Named
)

// Volume is a volume of a Spec.
type Volume struct {
	Name string
	Kind VolumeKind
	// Claim is the name of a Named volume's claim.
	Claim string
	// Size is a quantity; empty means unlimited, or the configured size.
	Size string
	// StorageClass names an entry of the catalog.
	StorageClass string
	Labels       map[string]string
	Properties   map[string]string
}

// DNS changes the Pod's name resolution. Nameservers replace the cluster's.
type DNS struct{ Nameservers, Searches []string }

// Resources holds Kubernetes quantities; empty means unset.
type Resources struct{ RequestsCPU, RequestsMemory, LimitsCPU, LimitsMemory string }

// PullCredential opens a registry.
type PullCredential struct {
	// Registry is the key of a Docker configuration: a host, or for Docker Hub
	// https://index.docker.io/v1/.
	Registry, Username, Password string
}
