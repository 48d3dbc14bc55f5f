package catalog

import (
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agynio/k8s-runner/quantity"
	"github.com/agynio/k8s-runner/workload"
)

var nameForm = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// Parse reads a catalog file and returns every fault of it, in the order of
// its lines. A catalog with faults is not to be used.
func Parse(data []byte) (*Catalog, []Fault) {
	c, r := &Catalog{}, &reader{}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := documents.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return c, nil // an empty catalog offers nothing
	case err != nil:
		return c, []Fault{syntaxFault(err)}
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		r.fault(&second, "file", "holds a second document")
	case !errors.Is(err, io.EOF):
		return c, []Fault{syntaxFault(err)}
	}
	r.mapping(doc.Content[0], "", fields{
		"flavors": func(n *yaml.Node, path string) {
			r.list(n, path, func(n *yaml.Node, path string) { c.Flavors = append(c.Flavors, r.flavor(n, path)) })
			r.named(n, path, func(i int) (string, bool) { return c.Flavors[i].Name, c.Flavors[i].Default })
		},
		"storageClasses": func(n *yaml.Node, path string) {
			r.list(n, path, func(n *yaml.Node, path string) { c.StorageClasses = append(c.StorageClasses, r.storageClass(n, path)) })
			r.named(n, path, func(i int) (string, bool) { return c.StorageClasses[i].Name, c.StorageClasses[i].Default })
		},
		"capabilities": func(n *yaml.Node, path string) {
			c.Capabilities = []string{}
			r.list(n, path, func(n *yaml.Node, path string) {
				var name string
				r.text(&name)(n, path)
				if name != "" && !slices.Contains(known(), name) {
					r.fault(n, path, "%q is unknown; the runner has %s and %s", name, Docker, ComputeResources)
				}
				c.Capabilities = append(c.Capabilities, name)
			})
			r.named(n, path, func(i int) (string, bool) { return c.Capabilities[i], false })
		},
	})
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return a.Line - b.Line })
	return c, r.faults
}

// syntaxFault takes the line out of the YAML library's words.
func syntaxFault(err error) Fault {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	f := Fault{Line: 1, Field: "file", Message: message}
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, what, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			f.Line, f.Message = line, what
		}
	}
	return f
}

// named checks that the entries of a list have unique names of the right form,
// and that at most one is the default.
func (r *reader) named(list *yaml.Node, path string, entry func(i int) (name string, isDefault bool)) {
	if list.Kind != yaml.SequenceNode {
		return // no entry was read
	}
	seen, defaultName := map[string]int{}, ""
	for i, n := range list.Content {
		name, isDefault := entry(i)
		at := path + "[" + strconv.Itoa(i) + "]"
		if n.Kind == yaml.MappingNode {
			at += ".name"
		}
		switch first, twice := seen[name]; {
		case !nameForm.MatchString(name):
			r.fault(n, at, "%q is not a name of 1 to 64 lower-case letters, digits and '-'", name)
		case twice:
			r.fault(n, at, "%q is the name of %s[%d] as well", name, path, first)
		default:
			seen[name] = i
		}
		switch {
		case isDefault && defaultName != "":
			r.fault(n, at, "%q and %q are both the default", defaultName, name)
		case isDefault:
			defaultName = name
		}
	}
}

func (r *reader) flavor(n *yaml.Node, path string) Flavor {
	var f Flavor
	r.mapping(n, path, fields{
		"name":             r.text(&f.Name),
		"default":          r.flag(&f.Default),
		"deprecated":       r.flag(&f.Deprecated),
		"resources":        r.resources(&f.Resources),
		"sidecarResources": r.resources(&f.SidecarResources),
		"devices":          r.pairs(&f.Devices, r.checkDevice),
		"nodeSelector":     r.pairs(&f.NodeSelector, r.checkLabel),
		"runtimeClass":     r.object(&f.RuntimeClass),
		"priorityClass":    r.object(&f.PriorityClass),
		"tolerations": func(n *yaml.Node, path string) {
			r.list(n, path, func(n *yaml.Node, path string) { f.Tolerations = append(f.Tolerations, r.toleration(n, path)) })
		},
		"supplementalGroups": func(n *yaml.Node, path string) {
			r.list(n, path, func(n *yaml.Node, path string) {
				group := r.number(n, path)
				if group < 0 || group > math.MaxInt32 {
					r.fault(n, path, "must be from 0 to %d", math.MaxInt32)
				}
				f.SupplementalGroups = append(f.SupplementalGroups, group)
			})
		},
	})
	return f
}

func (r *reader) storageClass(n *yaml.Node, path string) StorageClass {
	var s StorageClass
	r.mapping(n, path, fields{
		"name":             r.text(&s.Name),
		"storageClassName": r.object(&s.ClassName),
		"default":          r.flag(&s.Default),
		"deprecated":       r.flag(&s.Deprecated),
	})
	return s
}

func (r *reader) toleration(n *yaml.Node, path string) Toleration {
	var t Toleration
	r.mapping(n, path, fields{
		"key":      r.valid(&t.Key, isTaintKey, "the key of a taint"),
		"operator": r.oneOf(&t.Operator, "Exists", "Equal"),
		"value":    r.valid(&t.Value, isLabelValue, "the value of a taint"),
		"effect":   r.oneOf(&t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute"),
		"tolerationSeconds": func(n *yaml.Node, path string) {
			seconds := r.number(n, path)
			t.Seconds = &seconds
		},
	})
	switch {
	case t.Operator == "Exists" && t.Value != "":
		r.fault(n, path, "with the operator Exists there is no value")
	case t.Key == "" && t.Operator != "Exists":
		r.fault(n, path, "without a key the operator must be Exists")
	case t.Seconds != nil && t.Effect != "NoExecute":
		r.fault(n, path, "tolerationSeconds need the effect NoExecute")
	}
	return t
}

func (r *reader) resources(to *workload.Resources) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		r.mapping(n, path, fields{
			"requestsCpu":    r.quantity(&to.RequestsCPU),
			"requestsMemory": r.quantity(&to.RequestsMemory),
			"limitsCpu":      r.quantity(&to.LimitsCPU),
			"limitsMemory":   r.quantity(&to.LimitsMemory),
		})
		for _, pair := range [...]struct{ what, request, limit string }{
			{"CPU", to.RequestsCPU, to.LimitsCPU}, {"memory", to.RequestsMemory, to.LimitsMemory},
		} {
			if quantity.Exceeds(pair.request, pair.limit) {
				r.fault(n, path, "the request of %s, %s, is above its limit, %s", pair.what, pair.request, pair.limit)
			}
		}
	}
}

func (r *reader) quantity(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		r.text(to)(n, path)
		if q, ok := quantity.Parse(*to); !ok || q.Sign() < 0 {
			r.fault(n, path, "%q is not a quantity such as 500m or 2Gi", *to)
		}
	}
}

// object reads the name of a Kubernetes object.
func (r *reader) object(to *string) func(*yaml.Node, string) {
	isName := func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
	return r.valid(to, isName, "the name of a Kubernetes object")
}

// valid reads text of which ok is true, which makes it what is wanted.
func (r *reader) valid(to *string, ok func(string) bool, wanted string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		r.text(to)(n, path)
		if !ok(*to) {
			r.fault(n, path, "%q is not %s", *to, wanted)
		}
	}
}

// isTaintKey takes an empty key, which stands for all.
func isTaintKey(s string) bool { return s == "" || len(validation.IsQualifiedName(s)) == 0 }

func isLabelValue(s string) bool { return len(validation.IsValidLabelValue(s)) == 0 }

func (r *reader) oneOf(to *string, values ...string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		r.text(to)(n, path)
		if !slices.Contains(values, *to) {
			r.fault(n, path, "%q is none of %s", *to, strings.Join(values, ", "))
		}
	}
}

func (r *reader) checkLabel(n *yaml.Node, path, key, value string) {
	if len(validation.IsQualifiedName(key)) > 0 || !isLabelValue(value) {
		r.fault(n, path, "%q is no label", key+"="+value)
	}
}

func (r *reader) checkDevice(n *yaml.Node, path, key, value string) {
	if !isExtendedResource(key) {
		r.fault(n, path, "%q is not the name of an extended resource such as nvidia.com/gpu", key)
	}
	if q, ok := quantity.Parse(value); !ok || q.Sign() <= 0 || q.Value()*1000 != q.MilliValue() {
		r.fault(n, path, "%q is not a whole number above zero", value)
	}
}

// isExtendedResource is IsExtendedResourceName of Kubernetes
// (pkg/apis/core/v1/helper), which also asks for the name of its quota.
func isExtendedResource(name string) bool {
	const ofQuota = "requests."
	return strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/") && !strings.HasPrefix(name, ofQuota) &&
		len(validation.IsQualifiedName(ofQuota+name)) == 0
}
