package render

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/workload"
)

// inlineVolume is the name of the Pod's volume of inline files.
const inlineVolume = "inline-files"

// NewInput returns what the templates see of spec. plan is what the names in
// spec stand for.
func NewInput(spec *workload.Spec, plan *catalog.Plan, s Settings) *Input {
	labels := workload.IdentityLabels(spec.ID)
	maps.Copy(labels, spec.Labels)
	in := &Input{
		ID:           spec.ID,
		Name:         workload.PodName(spec.ID),
		Namespace:    s.Namespace,
		Labels:       labels,
		Properties:   spec.Properties,
		Capabilities: spec.Capabilities,
		Flavor: Flavor{
			Name:               plan.Flavor.Name,
			NodeSelector:       plan.Flavor.NodeSelector,
			Tolerations:        plan.Flavor.Tolerations,
			PriorityClass:      plan.Flavor.PriorityClass,
			SupplementalGroups: plan.Flavor.SupplementalGroups,
		},
		RuntimeClass:  plan.RuntimeClass,
		InlineFiles:   newInlineFiles(spec),
		PullSecrets:   newPullSecrets(spec),
		DNS:           DNS{Nameservers: spec.DNS.Nameservers, Searches: spec.DNS.Searches},
		FSGroup:       s.FSGroup,
		RunAsUser:     s.RunAsUser,
		Restricted:    s.Restricted,
		NetworkPolicy: s.NetworkPolicy,
	}
	in.addContainers(spec, plan)
	in.addVolumes(spec, plan, s)
	if plan.Docker != "" {
		in.Docker = &Docker{Implementation: plan.Docker, Image: s.DockerImage, Resources: newResources(&plan.Flavor.SidecarResources, nil)}
		if plan.Docker == catalog.DockerRootless {
			in.Docker.Image = s.DockerRootlessImage
		}
	}
	return in
}

func (in *Input) addContainers(spec *workload.Spec, plan *catalog.Plan) {
	keys := map[string]string{}
	if in.InlineFiles != nil {
		for _, f := range in.InlineFiles.Files {
			keys[f.Path] = f.Key
		}
	}
	main := newContainer(&spec.Main, "main", keys)
	main.Resources = newResources(size(spec.Main.Resources, &plan.Flavor.Resources), plan.Flavor.Devices)
	in.Containers = append(make([]Container, 0, 1+len(spec.Sidecars)), main)
	sidecar := func(c *workload.Container) Container {
		out := newContainer(c, "sidecar", keys)
		out.Resources = newResources(size(c.Resources, &plan.Flavor.SidecarResources), nil)
		return out
	}
	for i := range spec.Sidecars {
		in.Containers = append(in.Containers, sidecar(&spec.Sidecars[i]))
	}
	for i := range spec.Inits {
		c := &spec.Inits[i]
		if c.Restarts {
			native := sidecar(c)
			native.RestartPolicy = "Always"
			in.InitContainers = append(in.InitContainers, native)
			continue
		}
		init := newContainer(c, "init", keys)
		init.Resources = newResources(size(c.Resources, &workload.Resources{}), nil)
		in.InitContainers = append(in.InitContainers, init)
	}
}

func (in *Input) addVolumes(spec *workload.Spec, plan *catalog.Plan, s Settings) {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.Kind != workload.Named {
			in.Volumes = append(in.Volumes, Volume{Name: v.Name, SizeLimit: v.Size, Properties: v.Properties})
			continue
		}
		in.Volumes = append(in.Volumes, Volume{Name: v.Name, Claim: v.Claim, Properties: v.Properties})
		if slices.ContainsFunc(in.Claims, func(c Claim) bool { return c.Name == v.Claim }) {
			continue // two volumes of one claim
		}
		claim := Claim{
			Name: v.Claim, Labels: maps.Clone(in.Labels), Size: v.Size,
			StorageClass: plan.StorageClasses[v.Name], Properties: v.Properties,
		}
		maps.Copy(claim.Labels, v.Labels)
		delete(claim.Labels, workload.LabelID) // it outlives the workload
		if claim.Size == "" {
			claim.Size = s.ClaimSize
		}
		in.Claims = append(in.Claims, claim)
	}
}

func newContainer(c *workload.Container, role string, keys map[string]string) Container {
	out := Container{
		Name:         c.Name,
		Role:         role,
		Image:        c.Image,
		WorkingDir:   c.WorkingDir,
		ReadOnlyRoot: c.ReadOnlyRoot,
		Properties:   c.Properties,
	}
	for _, name := range c.Capabilities {
		if !slices.Contains(out.Capabilities, name) {
			out.Capabilities = append(out.Capabilities, name)
		}
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
	// A mount of its own for each file leaves its siblings in the image visible.
	for _, file := range c.InlineFiles {
		out.Mounts = append(out.Mounts, Mount{Name: inlineVolume, MountPath: file, SubPath: keys[file], ReadOnly: true})
	}
	return out
}

// literal makes the kubelet pass s on byte for byte: it expands $(NAME) and
// reads $$ as $ in commands, arguments and values
// (k8s.io/kubernetes/third_party/forked/golang/expansion).
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// size returns the container's own size, which replaces that of the flavor.
func size(own, flavor *workload.Resources) *workload.Resources {
	if own != nil {
		return own
	}
	return flavor
}

func newResources(r *workload.Resources, devices map[string]string) *Resources {
	out := Resources{Requests: map[string]string{}, Limits: map[string]string{}}
	set := func(in map[string]string, name, amount string) {
		if amount != "" {
			in[name] = amount
		}
	}
	set(out.Requests, "cpu", r.RequestsCPU)
	set(out.Requests, "memory", r.RequestsMemory)
	set(out.Limits, "cpu", r.LimitsCPU)
	set(out.Limits, "memory", r.LimitsMemory)
	maps.Copy(out.Limits, devices)
	if len(out.Requests) == 0 {
		out.Requests = nil
	}
	if len(out.Limits) == 0 {
		out.Limits = nil
	}
	if out.Requests == nil && out.Limits == nil {
		return nil
	}
	return &out
}

// newInlineFiles gives each file a key that stands for its path.
func newInlineFiles(spec *workload.Spec) *InlineFiles {
	if len(spec.InlineFiles) == 0 {
		return nil
	}
	out := &InlineFiles{Secret: workload.InlineFilesName(spec.ID), Volume: inlineVolume}
	for i, path := range slices.Sorted(maps.Keys(spec.InlineFiles)) {
		out.Files = append(out.Files, InlineFile{
			Path: path, Key: "file-" + strconv.Itoa(i+1), Data: base64.StdEncoding.EncodeToString(spec.InlineFiles[path]),
		})
	}
	return out
}

// dockerConfig is a .dockerconfigjson.
type dockerConfig struct {
	Auths map[string]dockerAuth `json:"auths"`
}

type dockerAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
	// Auth is both in base64, which some tools read alone.
	Auth string `json:"auth"`
}

// newPullSecrets puts all credentials into one Secret, but for those of a
// registry that has several: the kubelet tries one Secret after the other.
func newPullSecrets(spec *workload.Spec) []PullSecret {
	var configs []dockerConfig
	for _, c := range spec.PullCredentials {
		i := slices.IndexFunc(configs, func(d dockerConfig) bool {
			_, taken := d.Auths[c.Registry]
			return !taken
		})
		if i < 0 {
			i = len(configs)
			configs = append(configs, dockerConfig{Auths: map[string]dockerAuth{}})
		}
		configs[i].Auths[c.Registry] = dockerAuth{
			Username: c.Username, Password: c.Password,
			Auth: base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password)),
		}
	}
	out := make([]PullSecret, len(configs))
	for i, config := range configs {
		text, _ := json.Marshal(config) // strings always have a JSON
		out[i] = PullSecret{Name: workload.PullSecretName(spec.ID, i), Config: base64.StdEncoding.EncodeToString(text)}
	}
	return out
}
