// Package request turns a StartWorkloadRequest into a workload.Spec: it fills
// in the defaults that a caller may leave out and reports every fault at once,
// each with the path of its field.
package request

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// Known additional properties of a container.
const (
	propRestartPolicy = "restart_policy"
	propReadOnlyRoot  = "read_only_root_filesystem"
)

// labelProperty starts the additional properties of a request that are labels.
const labelProperty = "label."

// Parse returns the Spec that req asks for, or a *workload.Error of kind
// InvalidArgument that holds every fault of req.
func Parse(req *runnerv1.StartWorkloadRequest) (*workload.Spec, error) {
	spec, violations := Read(req)
	if err := workload.Invalid(violations); err != nil {
		return nil, err
	}
	return spec, nil
}

// Read returns the Spec that req asks for and every fault of req. A Spec with
// faults is only good for finding more of them. An empty workload id is
// replaced by a random one. A request with too many of something is examined no
// further, and its Spec is empty.
func Read(req *runnerv1.StartWorkloadRequest) (*workload.Spec, []workload.Violation) {
	p := &parser{}
	if !p.isBounded(req) {
		return &workload.Spec{}, p.violations
	}
	spec := p.spec(req)
	p.validate(spec)
	spec.Digest = digest(spec)
	return spec, p.violations
}

// maxViolations bounds an answer: a gRPC status has to fit into a header.
const maxViolations = 50

// parser collects the faults that it meets.
type parser struct {
	violations []workload.Violation
	// labelFields says where each label stands in the request.
	labelFields map[string]string
}

func (p *parser) fault(field, token, format string, args ...any) {
	if len(p.violations) == maxViolations {
		return
	}
	p.violations = append(p.violations, workload.Violation{
		Field: field, Token: token, Message: fmt.Sprintf(format, args...),
	})
}

func (p *parser) spec(req *runnerv1.StartWorkloadRequest) *workload.Spec {
	if req.GetMain() == nil {
		p.fault("main", "main_container_required", "a workload needs a main container")
	}
	spec := &workload.Spec{
		ID:           p.id(req.GetWorkloadId()),
		Main:         p.container("main", "main", req.GetMain()),
		Labels:       p.labels(req),
		Properties:   req.GetAdditionalProperties(),
		Flavor:       req.GetFlavor(),
		Capabilities: req.GetCapabilities(),
		InlineFiles:  req.GetInlineFiles(),
		DNS: workload.DNS{
			Nameservers: req.GetDnsConfig().GetNameservers(),
			Searches:    req.GetDnsConfig().GetSearches(),
		},
	}
	for i, c := range req.GetSidecars() {
		spec.Sidecars = append(spec.Sidecars, p.container(index("sidecars", i), numbered("sidecar", i), c))
	}
	for i, c := range req.GetInitContainers() {
		field := index("init_containers", i)
		init := p.container(field, numbered("init", i), c)
		init.Restarts = p.restarts(field, c)
		spec.Inits = append(spec.Inits, init)
	}
	for i, v := range req.GetVolumes() {
		spec.Volumes = append(spec.Volumes, p.volume(index("volumes", i), v))
	}
	for i, c := range req.GetImagePullCredentials() {
		spec.PullCredentials = append(spec.PullCredentials, p.pullCredential(index("image_pull_credentials", i), c))
	}
	return spec
}

func (p *parser) id(id string) string {
	if id == "" {
		return uuid.NewString()
	}
	parsed, ok := workload.ParseRef(id)
	if !ok {
		p.fault("workload_id", "invalid_workload_id", "%q is not a UUID in lower case", id)
	}
	return parsed
}

func (p *parser) container(field, defaultName string, c *runnerv1.ContainerSpec) workload.Container {
	name := c.GetName()
	if name == "" {
		name = defaultName
	}
	out := workload.Container{
		Name:         name,
		Image:        c.GetImage(),
		Entrypoint:   c.GetEntrypoint(),
		Args:         c.GetCmd(),
		Env:          p.env(field+".env", c.GetEnv()),
		WorkingDir:   c.GetWorkingDir(),
		Capabilities: p.linuxCapabilities(field+".required_capabilities", c.GetRequiredCapabilities()),
		Resources:    p.resources(field+".resources", c.GetResources()),
		Properties:   c.GetAdditionalProperties(),
		ReadOnlyRoot: p.readOnlyRoot(field, c),
	}
	for _, m := range c.GetMounts() {
		out.Mounts = append(out.Mounts, workload.Mount{
			Volume: m.GetVolume(), Path: cleanPath(m.GetMountPath()), ReadOnly: m.GetReadOnly(),
		})
	}
	for _, m := range c.GetInlineFileMounts() {
		out.InlineFiles = append(out.InlineFiles, m.GetPath())
	}
	return out
}

// restarts reads what only an init container gives a meaning to. Elsewhere it
// is one of the properties that are there for templates, and not checked.
func (p *parser) restarts(field string, c *runnerv1.ContainerSpec) bool {
	policy, set := c.GetAdditionalProperties()[propRestartPolicy]
	if set && policy != "Always" {
		p.fault(property(field, propRestartPolicy), "invalid_restart_policy",
			"%q is unknown; an init container takes Always, which makes it a sidecar", policy)
	}
	return set
}

func (p *parser) readOnlyRoot(field string, c *runnerv1.ContainerSpec) *bool {
	text, set := c.GetAdditionalProperties()[propReadOnlyRoot]
	if !set {
		return nil
	}
	if text != "true" && text != "false" {
		p.fault(property(field, propReadOnlyRoot), "invalid_read_only_root_filesystem", "%q is neither true nor false", text)
	}
	readOnly := text == "true"
	return &readOnly
}

func (p *parser) volume(field string, v *runnerv1.VolumeSpec) workload.Volume {
	out := workload.Volume{
		Name:         v.GetName(),
		Claim:        v.GetPersistentName(),
		Size:         v.GetSize(),
		StorageClass: v.GetStorageClass(),
		Labels:       v.GetLabels(),
		Properties:   v.GetAdditionalProperties(),
	}
	switch v.GetKind() {
	case runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL:
		out.Kind = workload.Ephemeral
	case runnerv1.VolumeKind_VOLUME_KIND_NAMED:
		out.Kind = workload.Named
		if out.Claim == "" {
			out.Claim = v.GetName()
		}
	default:
		p.fault(field+".kind", "volume_kind_required", "a volume is either ephemeral or named")
	}
	return out
}

// labels merges the two places where a request may carry labels.
func (p *parser) labels(req *runnerv1.StartWorkloadRequest) map[string]string {
	labels := make(map[string]string, len(req.GetLabels()))
	p.labelFields = make(map[string]string, len(req.GetLabels()))
	for key, value := range req.GetLabels() {
		labels[key], p.labelFields[key] = value, "labels["+key+"]"
	}
	for _, prop := range sortedKeys(req.GetAdditionalProperties()) {
		key, isLabel := strings.CutPrefix(prop, labelProperty)
		if !isLabel {
			continue
		}
		value := req.GetAdditionalProperties()[prop]
		if other, both := labels[key]; !both {
			labels[key], p.labelFields[key] = value, property("", prop)
		} else if other != value {
			p.fault(property("", prop), "conflicting_label", "labels gives %q another value", key)
		}
	}
	return labels
}

// env keeps each name once, with its last value, as docker run does.
func (p *parser) env(field string, env []*runnerv1.EnvVar) []workload.EnvVar {
	out := make([]workload.EnvVar, 0, len(env))
	at := make(map[string]int, len(env))
	for i, e := range env {
		if len(validation.IsEnvVarName(e.GetName())) > 0 {
			p.fault(index(field, i)+".name", "invalid_env_name",
				"%q is not a name of letters, digits, '_', '-' and '.' that starts with no digit", beforeValue(e.GetName()))
		}
		p.checkNoNUL(index(field, i)+".value", e.GetValue())
		p.checkLength(index(field, i)+".value", len(e.GetName())+len("=")+len(e.GetValue()), maxString)
		if first, seen := at[e.GetName()]; seen {
			out[first].Value = e.GetValue()
			continue
		}
		at[e.GetName()] = len(out)
		out = append(out, workload.EnvVar{Name: e.GetName(), Value: e.GetValue()})
	}
	return out
}

// beforeValue cuts off what follows an =, which may be a secret value that a
// caller put into the name.
func beforeValue(name string) string {
	name, _, isPair := strings.Cut(name, "=")
	if isPair {
		name += "=…"
	}
	return name
}

// cleanPath makes /w and /w/ equal. What is not absolute stays as it is.
func cleanPath(p string) string {
	if !path.IsAbs(p) {
		return p
	}
	return path.Clean(p)
}

// digest hashes the JSON of spec, in which encoding/json sorts the maps.
func digest(spec *workload.Spec) string {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(spec); err != nil {
		// A Spec holds strings, bytes, booleans and containers of them.
		panic(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func index(field string, i int) string     { return field + "[" + strconv.Itoa(i) + "]" }
func numbered(prefix string, i int) string { return prefix + "-" + strconv.Itoa(i+1) }

func property(field, key string) string {
	return strings.TrimPrefix(field+".additional_properties["+key+"]", ".")
}
