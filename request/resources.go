package request

import (
	"regexp"
	"strings"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/quantity"
	"github.com/agynio/k8s-runner/workload"
)

var linuxCapability = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,31}$`)

// linuxCapabilities reads names such as NET_ADMIN, which docker also spells
// CAP_NET_ADMIN. One that is none becomes "", so that the others keep the
// indices by which the catalog names them.
func (p *parser) linuxCapabilities(field string, names []string) []string {
	var out []string
	for i, text := range names {
		name := strings.TrimPrefix(strings.ToUpper(text), "CAP_")
		if !linuxCapability.MatchString(name) {
			p.fault(index(field, i), "invalid_capability", "%q is not a Linux capability such as NET_ADMIN", text)
			name = ""
		}
		out = append(out, name)
	}
	return out
}

// resources reads a container's own size; one without content is none.
func (p *parser) resources(field string, r *runnerv1.ComputeResources) *workload.Resources {
	out := workload.Resources{
		RequestsCPU: r.GetRequestsCpu(), RequestsMemory: r.GetRequestsMemory(),
		LimitsCPU: r.GetLimitsCpu(), LimitsMemory: r.GetLimitsMemory(),
	}
	if out == (workload.Resources{}) {
		return nil
	}
	for _, part := range [...]struct{ name, request, limit string }{
		{"cpu", out.RequestsCPU, out.LimitsCPU}, {"memory", out.RequestsMemory, out.LimitsMemory},
	} {
		p.checkAmount(field+".requests_"+part.name, part.request)
		p.checkAmount(field+".limits_"+part.name, part.limit)
		if quantity.Exceeds(part.request, part.limit) {
			p.fault(field+".requests_"+part.name, "request_above_limit", "%s is above the limit, %s", part.request, part.limit)
		}
	}
	return &out
}

func (p *parser) checkAmount(field, text string) {
	if q, ok := quantity.Parse(text); text != "" && (!ok || q.Sign() < 0) {
		p.fault(field, "invalid_quantity", "%q is not a quantity such as 500m or 2Gi", text)
	}
}
