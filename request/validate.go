package request

import (
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agynio/k8s-runner/quantity"
	"github.com/agynio/k8s-runner/workload"
)

// Limits of a Pod's DNS configuration (Kubernetes, core validation).
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// Bounds of what Linux takes, in bytes, with the one that ends a string: of an
// argument or a variable with its name (MAX_ARG_STRLEN, 32 pages), and of a path.
const (
	maxString = 128 << 10
	maxPath   = 4 << 10
)

func (p *parser) validate(spec *workload.Spec) {
	p.checkLabels(spec)
	p.checkVolumes(spec)
	p.checkDNS(spec)
	p.checkInlineFiles(spec)
	p.checkPullSecrets(spec)
	declared := make(map[string]bool, len(spec.Volumes))
	for _, v := range spec.Volumes {
		declared[v.Name] = true
	}
	names := map[string]string{}
	for field, c := range spec.Containers() {
		p.checkContainer(field, c)
		if first, taken := names[c.Name]; taken {
			p.fault(field+".name", "duplicate_container_name", "%s and %s are both named %q", first, field, c.Name)
		}
		names[c.Name] = field
		p.checkMounts(field, c, declared)
	}
}

func (p *parser) checkContainer(field string, c *workload.Container) {
	p.checkImage(field, c.Image)
	if !isLabel(c.Name) {
		p.fault(field+".name", "invalid_container_name", "%q is not a DNS label: %s", c.Name, labelRule)
	}
	if strings.ContainsFunc(c.Entrypoint, unicode.IsSpace) {
		p.fault(field+".entrypoint", "invalid_entrypoint", "the entrypoint is one path without white space; arguments go into cmd")
	}
	if c.WorkingDir != "" && !path.IsAbs(c.WorkingDir) {
		p.fault(field+".working_dir", "invalid_working_dir", "%.100q is not an absolute path", c.WorkingDir)
	}
	for i, a := range c.Args {
		p.checkNoNUL(index(field+".cmd", i), a)
		p.checkLength(index(field+".cmd", i), len(a), maxString)
	}
	p.checkNoNUL(field+".entrypoint", c.Entrypoint)
	p.checkLength(field+".entrypoint", len(c.Entrypoint), maxPath)
	p.checkNoNUL(field+".working_dir", c.WorkingDir)
	p.checkLength(field+".working_dir", len(c.WorkingDir), maxPath)
}

// checkNoNUL refuses what no process can be given. It never repeats the text,
// which may be secret.
func (p *parser) checkNoNUL(field, text string) {
	if strings.ContainsRune(text, 0) {
		p.fault(field, "invalid_string", "holds a NUL byte, which no process can receive")
	}
}

// checkLength refuses what the kernel does: then no process starts. A variable
// counts with its name.
func (p *parser) checkLength(field string, bytes, limit int) {
	if bytes >= limit {
		p.fault(field, "string_too_long", "it has %d bytes, Linux takes %d", bytes, limit-1)
	}
}

func (p *parser) checkMounts(field string, c *workload.Container, declared map[string]bool) {
	paths := map[string]string{}
	for i, m := range c.Mounts {
		at := index(field+".mounts", i)
		switch {
		case len(m.Path) >= maxPath:
			p.checkLength(at+".mount_path", len(m.Path), maxPath)
		case isProc(m.Path):
			p.fault(at+".mount_path", "invalid_mount_path", "%q is the kernel's: nothing can be mounted there", m.Path)
		case !path.IsAbs(m.Path), strings.ContainsAny(m.Path, ":\x00"), m.Path == "/":
			p.fault(at+".mount_path", "invalid_mount_path", "%q is not an absolute path below / without a colon", m.Path)
		case paths[m.Path] != "":
			p.fault(at+".mount_path", "duplicate_mount_path", "%s and %s both mount at %q", paths[m.Path], at, m.Path)
		default:
			paths[m.Path] = at
		}
		if !declared[m.Volume] {
			p.fault(at+".volume", "undeclared_volume", "volumes has no volume %q", m.Volume)
		}
	}
}

// isProc reports whether a clean path is where container runtimes mount
// nothing (runc's checkProcMount). Of /sys and /dev they have no such rule.
func isProc(path string) bool { return path == "/proc" || strings.HasPrefix(path, "/proc/") }

func (p *parser) checkVolumes(spec *workload.Spec) {
	names, claims := map[string]string{}, map[string]int{}
	for i, v := range spec.Volumes {
		field := index("volumes", i)
		if !isLabel(v.Name) {
			p.fault(field+".name", "invalid_volume_name", "%q is not a DNS label: %s", v.Name, labelRule)
		}
		if first, taken := names[v.Name]; taken {
			p.fault(field+".name", "duplicate_volume_name", "%s and %s are both named %q", first, field, v.Name)
		}
		names[v.Name] = field
		if v.Size != "" && !quantity.IsSize(v.Size) {
			p.fault(field+".size", "invalid_size", "%q is not a quantity above zero, such as 10Gi", v.Size)
		}
		if v.Kind == workload.Named {
			p.checkClaim(field, &v, spec.ID)
			if first, taken := claims[v.Claim]; taken && !sameClaim(&spec.Volumes[first], &v) {
				p.fault(field+".persistent_name", "conflicting_claim",
					"volumes[%d] and %s are both the claim %q and differ in size, class or labels", first, field, v.Claim)
			}
			claims[v.Claim] = i
		}
	}
}

// sameClaim reports whether two volumes of one claim ask for the same.
func sameClaim(a, b *workload.Volume) bool {
	return a.Size == b.Size && a.StorageClass == b.StorageClass && maps.Equal(a.Labels, b.Labels)
}

// checkClaim checks what becomes a claim. Its labels are the claim's alone.
func (p *parser) checkClaim(field string, v *workload.Volume, id string) {
	if v.Claim != v.Name && len(validation.IsDNS1123Subdomain(v.Claim)) > 0 {
		p.fault(field+".persistent_name", "invalid_claim_name", "%q is not a DNS subdomain", v.Claim)
	}
	for _, key := range sortedKeys(v.Labels) {
		p.checkLabel(field+".labels["+key+"]", key, v.Labels[key], id)
	}
}

func (p *parser) checkLabels(spec *workload.Spec) {
	for _, key := range sortedKeys(spec.Labels) {
		p.checkLabel(p.labelFields[key], key, spec.Labels[key], spec.ID)
	}
}

func (p *parser) checkLabel(field, key, value, id string) {
	if workload.IsReservedLabel(key) && workload.IdentityLabels(id)[key] != value {
		p.fault(field, "reserved_label", "only the runner sets this label")
		return
	}
	if len(validation.IsQualifiedName(key)) > 0 {
		p.fault(field, "invalid_label", "the key is not [domain/]name, with a name of %s", labelTextRule)
	}
	if len(validation.IsValidLabelValue(value)) > 0 {
		p.fault(field, "invalid_label", "the value %q is not empty or %s", value, labelTextRule)
	}
}

func (p *parser) checkDNS(spec *workload.Spec) {
	servers, searches := spec.DNS.Nameservers, spec.DNS.Searches
	if len(servers) > maxNameservers {
		p.fault("dns_config.nameservers", "too_many_nameservers", "%d are given, Kubernetes takes %d", len(servers), maxNameservers)
		servers = nil
	}
	for i, s := range servers {
		if ip, err := netip.ParseAddr(s); err != nil || ip.Zone() != "" {
			p.fault(index("dns_config.nameservers", i), "invalid_nameserver", "%q is not an IP address", s)
		}
	}
	if chars := len(strings.Join(searches, " ")); len(searches) > maxSearches || chars > maxSearchChars {
		p.fault("dns_config.searches", "too_many_searches", "%d with %d characters are given, Kubernetes takes %d with %d",
			len(searches), chars, maxSearches, maxSearchChars)
		searches = nil
	}
	for i, s := range searches {
		// A "." alone is taken from Kubernetes 1.33 on; before, its own answer names the field.
		if s != "." && len(validation.IsDNS1123Subdomain(strings.TrimSuffix(s, "."))) > 0 {
			p.fault(index("dns_config.searches", i), "invalid_search", "%q is not a domain name", s)
		}
	}
}

const labelTextRule = "letters, digits, '-', '_' and '.', 63 at most, a letter or digit at both ends"

const labelRule = "lower-case letters, digits and '-', 63 at most, a letter or digit at both ends"

func isLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
