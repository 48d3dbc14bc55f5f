package lint_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"

	"github.com/agynio/k8s-runner/lint"
)

func TestLevelOf(t *testing.T) {
	for text, want := range map[string]api.Level{
		`spec: {containers: [{name: a}]}`:                                      api.LevelBaseline,
		`spec: {hostNetwork: true, containers: [{name: a}]}`:                   api.LevelPrivileged,
		`spec: {containers: [{name: a, securityContext: {privileged: true}}]}`: api.LevelPrivileged,
		`spec: {containers: [{name: a, securityContext: {runAsUser: 0}}]}`:     api.LevelBaseline,
		`{spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`: api.LevelRestricted,
	} {
		pod := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &pod.Object); err != nil {
			t.Fatal(err)
		}
		if level, err := lint.LevelOf(pod); err != nil || level != want {
			t.Errorf("%s is %s (%v), not %s", text, level, err, want)
		}
	}
	if _, err := lint.LevelOf(&unstructured.Unstructured{Object: map[string]any{"spec": "none"}}); err == nil {
		t.Error("what is no Pod has a level")
	}
}
