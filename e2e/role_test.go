//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// roleFile holds the rules of the runner's Role, as its chart has them.
const roleFile = "../charts/k8s-runner/files/role-rules.yaml"

// readRules reads the rules of the runner's Role.
func readRules() ([]rbacv1.PolicyRule, error) {
	data, err := os.ReadFile(roleFile)
	if err != nil {
		return nil, fmt.Errorf("reading the Role: %w", err)
	}
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(data, &rules); err != nil {
		return nil, fmt.Errorf("reading the Role %s: %w", roleFile, err)
	}
	return rules, nil
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// verbsOf lists what rules allow, sorted, as "resource (group) verb".
func verbsOf(rules []rbacv1.PolicyRule) (verbs []string) {
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				if group != "" {
					resource += " (" + group + ")"
				}
				for _, verb := range r.Verbs {
					verbs = append(verbs, resource+" "+verb)
				}
			}
		}
	}
	slices.Sort(verbs)
	return verbs
}

// without returns the rules without one verb of one resource.
func without(rules []rbacv1.PolicyRule, resource, verb string) []rbacv1.PolicyRule {
	rules = slices.Clone(rules)
	for i, r := range rules {
		if slices.Contains(r.Resources, resource) {
			rules[i].Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return v == verb })
		}
	}
	return slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.Verbs) == 0 })
}

// TestDocumentationListsTheRole: docs/configuration.md has the Role's verbs, each
// once, and no others.
func TestDocumentationListsTheRole(t *testing.T) {
	rules, err := readRules()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "\n## Permissions\n")
	if !found {
		t.Fatal("docs/configuration.md has no permissions")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var documented []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.Contains(line, "---") || strings.HasPrefix(line, "| resource |") {
			continue
		}
		resource := strings.TrimSpace(cells[1])
		if strings.HasPrefix(resource, "each kind of ") { // the operator's own
			continue
		}
		for verb := range strings.SplitSeq(cells[2], ",") {
			documented = append(documented, resource+" "+strings.TrimSpace(verb))
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(verbsOf(rules), documented); diff != "" {
		t.Errorf("docs/configuration.md lists others (-the Role's +documented):\n%s", diff)
	}
}
