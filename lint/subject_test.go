package lint_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/pod-security-admission/api"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/lint"
)

// TestWhatIsRendered has templates that fail under one condition, and wants the
// request that meets it.
func TestWhatIsRendered(t *testing.T) {
	for condition, with := range map[string]string{
		`eq .Flavor.Name "medium"`:                                                  "flavor medium",
		`and .Claims (eq (first .Claims).StorageClass "odd")`:                       "storage class standard",
		`has "SYS_CHROOT" (first .Containers).Capabilities`:                         "Linux capability SYS_CHROOT",
		`has "compute-resources" .Capabilities`:                                     "capability compute-resources",
		`and (has "compute-resources" .Capabilities) (first .Containers).Resources`: "capability compute-resources",
		`and .Docker (eq .Docker.Implementation "rootless")`:                        "docker, implementation rootless",
		`and .Docker (eq .Docker.Implementation "privileged")`:                      "docker, implementation privileged",
		`and .Docker (eq .Docker.Implementation "kata-qemu")`:                       "docker, implementation kata-qemu",
		`and .Docker (eq .Docker.Implementation "kata-fc")`:                         "docker, implementation kata-fc",
		`and .NetworkPolicy (not .NetworkPolicy.EgressCIDRs)`:                       "network_policy.egress_cidrs []",
		`and .NetworkPolicy .NetworkPolicy.EgressCIDRs`:                             "network_policy.egress_cidrs [192.0.2.0/24]",
		`.Restricted`:  "security.profile restricted",
		`.RunAsUser`:   "security.profile restricted",
		`not .Volumes`: "a request of nothing but an image",
		`.PullSecrets`: "a request that has everything",
		`and (eq (first .Containers).Image "busybox") (gt (len .Labels) 3)`: "the shipped case ",
	} {
		t.Run(condition, func(t *testing.T) {
			suite := shipped(t)
			suite.Catalog.StorageClasses = []catalog.StorageClass{{Name: "standard", ClassName: "odd"}}
			suite.Templates = map[string]string{"pod.yaml": container + "{{ if " + condition + ` }}{{ fail "no" }}{{ end }}`}
			report, err := lint.Run(lint.Options{Suite: suite, Level: api.LevelBaseline})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Findings) != 1 || report.Findings[0].Line != 8 || !strings.Contains(report.Findings[0].Message, "(with "+with) {
				t.Errorf("the findings are %v", report.Findings)
			}
		})
	}
}

// TestOwnCases replace shipped ones of the same name.
func TestOwnCases(t *testing.T) {
	requests := func(name string) int {
		file := &fstest.MapFile{Data: []byte("# Why.\nworkload_id: aaaa0000-0000-4000-8000-000000000001\nmain: {image: busybox}\n")}
		report, err := lint.Run(lint.Options{Suite: shipped(t), Level: api.LevelBaseline, Cases: fstest.MapFS{name + "/request.yaml": file}})
		if err != nil || len(report.Findings) > 0 {
			t.Fatalf("the findings are %v (%v)", report.Findings, err)
		}
		return report.Requests
	}
	if more, same := requests("no-such"), requests("minimal"); more != same+1 {
		t.Errorf("with one case more %d requests are rendered, with one replaced %d", more, same)
	}
}
