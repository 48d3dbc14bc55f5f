package overrides

import (
	"context"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/overrides/broken"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
)

// TestBrokenTemplates lays broken templates over the shipped ones: each is rejected
// with a file and a line.
func TestBrokenTemplates(t *testing.T) {
	const wanted, seed = 200, 20260731
	suite, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	// A catalog and settings that reach every branch of the shipped templates.
	var faults []catalog.Fault
	if suite.Catalog, faults = catalog.Parse([]byte(broken.Catalog)); len(faults) > 0 {
		t.Fatal(faults)
	}
	suite.Config.Security.RunAsUser = 1000
	suite.Config.NetworkPolicy.EgressCIDRs = []string{"10.0.0.0/8"}
	suite.Config.NetworkPolicy.Enabled = true
	probe := &Probe{Suite: suite, DryRun: func(context.Context, *unstructured.Unstructured) error { return nil }}
	where := regexp.MustCompile(`^(mine/)?[a-z_-]+\.(yaml|tpl):\d+: `)
	rejected, ways := 0, map[string]int{}
	for b := range broken.Templates(suite.Templates, seed) {
		_, err := probe.Probe(t.Context(), []render.Layer{{Name: "mine", Files: map[string]string{b.File: b.Text}}})
		if err == nil {
			if !b.Harmless {
				t.Errorf("%s at %s:%d is accepted: %q", b.How, b.File, b.Line, b.Broken())
			}
			continue
		}
		if !where.MatchString(err.Error()) {
			t.Errorf("%s at %s:%d is rejected without a place: %v", b.How, b.File, b.Line, err)
		}
		ways[b.How]++
		if rejected++; rejected == wanted {
			break
		}
	}
	if rejected < wanted {
		t.Errorf("only %d were rejected", rejected)
	}
	t.Logf("seed %d: %d were rejected, by their ways %v", seed, rejected, ways)
}
