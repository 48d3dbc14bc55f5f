package lint_test

import (
	"testing"

	"k8s.io/pod-security-admission/api"

	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/lint"
	"github.com/agynio/k8s-runner/render/golden"
)

// TestRestrictedProfile renders every golden case under the profile restricted:
// Kubernetes' own evaluator admits each Pod that comes out.
func TestRestrictedProfile(t *testing.T) {
	suite, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := golden.ShippedCases()
	if err != nil {
		t.Fatal(err)
	}
	names, err := golden.Cases(cases)
	if err != nil {
		t.Fatal(err)
	}
	applies := 0
	for _, name := range names {
		c, err := suite.Read(cases, name)
		if err != nil {
			t.Fatal(err)
		}
		options := c.Options
		options.Templates, options.Layers = suite.Templates, nil // what an operator adds is his
		options.Config.Security.Profile = config.ProfileRestricted
		e, err := engine.New(options)
		if err != nil {
			t.Fatal(err)
		}
		_, manifests, err := e.Render(c.Request)
		if err != nil {
			continue // refused, with this profile or any
		}
		applies++
		level, err := lint.LevelOf(manifests.Pod)
		if err != nil {
			t.Fatal(err)
		}
		if level != api.LevelRestricted {
			t.Errorf("%s is %s", name, level)
		}
	}
	if applies < 30 {
		t.Errorf("it applies to %d cases", applies)
	}
	t.Logf("it applies to %d of %d cases", applies, len(names))
}
