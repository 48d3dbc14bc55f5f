package lint_test

import (
	"strings"
	"testing"

	"k8s.io/pod-security-admission/api"

	"github.com/agynio/k8s-runner/lint"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
)

// head is the beginning of a template, up to the fields of a Pod.
const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Name }}}\nspec:\n"

// container is line 5 to 7 of a template, up to the fields of the container.
const container = head + "  containers:\n  - name: {{ (first .Containers).Name }}\n    image: a\n"

func run(t *testing.T, template string, level api.Level) lint.Report {
	t.Helper()
	suite := shipped(t)
	suite.Templates = map[string]string{"pod.yaml": template}
	report, err := lint.Run(lint.Options{Suite: suite, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func shipped(t *testing.T) golden.Suite {
	t.Helper()
	suite, err := golden.Shipped()
	// What the seal refuses without them is what the levels are about.
	suite.Config.Security.AllowedPrivileges = render.Privileges()
	if err != nil {
		t.Fatal(err)
	}
	return suite
}

// TestShipped lints what the runner ships, under both profiles.
func TestShipped(t *testing.T) {
	suite := shipped(t)
	for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
		if level == api.LevelRestricted {
			suite.Config.Security.Profile = "restricted"
		}
		report, err := lint.Run(lint.Options{Suite: suite, Level: level})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Findings) > 0 || len(report.Idle) > 0 || report.Level != level {
			t.Errorf("%s: the findings are %v, idle are %v, the level is %s", level, report.Findings, report.Idle, report.Level)
		}
		if wanted := len(suite.Catalog.Flavors) + len(suite.Catalog.StorageClasses) + 4; report.Requests < wanted {
			t.Errorf("%d requests are rendered", report.Requests)
		}
	}
}

// TestFieldsOfLevels breaks each rule of the levels and wants its line.
func TestFieldsOfLevels(t *testing.T) {
	pod := func(fields string) string {
		return head + fields + "\n" + strings.TrimPrefix(container, head)
	}
	of := func(fields string) string { return container + fields + "\n" }
	volume := func(source string) string { return pod("  volumes:\n  - name: v\n    " + source) }
	for name, c := range map[string]struct{ template, where string }{
		"host network":          {pod("  hostNetwork: true"), "pod.yaml:5: spec.hostNetwork"},
		"host pid":              {pod("  hostIPC: false\n  hostPID: true"), "pod.yaml:6: spec.hostPID"},
		"host path":             {volume("hostPath: {path: /}"), "pod.yaml:7: spec.volumes[0].hostPath.path"},
		"sysctl":                {pod("  securityContext:\n    sysctls: [{name: kernel.msgmax, value: \"1\"}]"), "pod.yaml:6: spec.securityContext.sysctls[0]"},
		"seccomp of the Pod":    {pod("  securityContext:\n    seccompProfile:\n      type: Unconfined"), "pod.yaml:7: spec.securityContext.seccompProfile.type"},
		"SELinux of the Pod":    {pod("  securityContext:\n    seLinuxOptions: {user: root}"), "pod.yaml:6: spec.securityContext.seLinuxOptions.user"},
		"Windows":               {pod("  securityContext:\n    windowsOptions: {hostProcess: true}"), "pod.yaml:6: spec.securityContext.windowsOptions.hostProcess"},
		"AppArmor":              {of("    securityContext:\n      appArmorProfile:\n        type: Unconfined"), "pod.yaml:10: spec.containers[0].securityContext.appArmorProfile.type"},
		"privileged":            {of("    securityContext:\n      privileged: true"), "pod.yaml:9: spec.containers[0].securityContext.privileged"},
		"the second capability": {of("    securityContext:\n      capabilities:\n        add:\n        - CHOWN\n        - NET_RAW"), "pod.yaml:12: spec.containers[0].securityContext.capabilities.add[1]"},
		"proc mount":            {of("    securityContext: {procMount: Unmasked}"), "pod.yaml:8: spec.containers[0].securityContext.procMount"},
		"host port":             {of("    ports:\n    - containerPort: 80\n      hostPort: 80"), "pod.yaml:10: spec.containers[0].ports[0].hostPort"},
		"the host of a probe":   {of("    livenessProbe:\n      httpGet: {port: 80, host: 127.0.0.1}"), "pod.yaml:9: spec.containers[0].livenessProbe.httpGet.host"},
	} {
		t.Run(name, func(t *testing.T) {
			report := run(t, c.template, api.LevelBaseline)
			if len(report.Findings) != 1 || !strings.HasPrefix(report.Findings[0].String(), c.where+" exceeds the Pod Security level baseline: ") {
				t.Errorf("the findings are %v", report.Findings)
			}
			if report.Level != api.LevelPrivileged {
				t.Errorf("the level is %s", report.Level)
			}
			if report := run(t, c.template, api.LevelPrivileged); len(report.Findings) > 0 {
				t.Errorf("privileged admits all, and the findings are %v", report.Findings)
			}
		})
	}
}

// TestWhatRestrictedWants finds what is not there, at the container without it.
func TestWhatRestrictedWants(t *testing.T) {
	const good = `    securityContext:
      allowPrivilegeEscalation: false
      runAsNonRoot: true
      capabilities: {drop: [ALL]}
      seccompProfile: {type: RuntimeDefault}
`
	if report := run(t, container+good, api.LevelRestricted); len(report.Findings) > 0 || report.Level != api.LevelRestricted {
		t.Fatalf("the findings are %v, the level is %s", report.Findings, report.Level)
	}
	for _, line := range strings.SplitAfter(strings.TrimSuffix(good, "\n"), "\n")[1:] {
		without := strings.Replace(container+good, line, "", 1)
		report := run(t, without, api.LevelRestricted)
		if len(report.Findings) != 1 || !strings.HasPrefix(report.Findings[0].String(), "pod.yaml:9: spec.containers[0].securityContext exceeds the Pod Security level restricted: ") {
			t.Errorf("without %q the findings are %v", line, report.Findings)
		}
	}
	// Of two containers it is the second.
	second := run(t, container+good+"  - name: second\n    image: a\n"+strings.Replace(good, "      runAsNonRoot: true\n", "", 1), api.LevelRestricted)
	if len(second.Findings) != 1 || !strings.HasPrefix(second.Findings[0].String(), "pod.yaml:16: spec.containers[1].securityContext ") {
		t.Errorf("the findings are %v", second.Findings)
	}
}

// TestInitContainerOnly does not blame the containers after it.
func TestInitContainerOnly(t *testing.T) {
	report := run(t, head+`  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  initContainers:
  - {name: init, image: a}
  containers:
  - name: {{ (first .Containers).Name }}
    image: a
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`, api.LevelRestricted)
	for _, f := range report.Findings {
		if f.Line != 7 {
			t.Errorf("a finding is %s", f)
		}
	}
	if len(report.Findings) != 2 {
		t.Errorf("the findings are %v", report.Findings)
	}
}

// TestLevelIsTheWorst has a Pod of one request among many that needs more.
func TestLevelIsTheWorst(t *testing.T) {
	report := run(t, head+"  {{- if .DNS.Searches }}\n  hostNetwork: true\n  {{- end }}\n"+strings.TrimPrefix(container, head), api.LevelPrivileged)
	if len(report.Findings) > 0 || report.Level != api.LevelPrivileged {
		t.Errorf("the findings are %v, the level is %s", report.Findings, report.Level)
	}
}

// TestDockerIsTheRequests does not judge what only docker needs.
func TestDockerIsTheRequests(t *testing.T) {
	privileged := container + "    {{- if .Docker }}\n    securityContext: {privileged: true}\n    {{- end }}\n"
	if report := run(t, privileged, api.LevelBaseline); len(report.Findings) > 0 || report.Level != api.LevelBaseline {
		t.Errorf("the findings are %v, the level is %s", report.Findings, report.Level)
	}
}

// TestEachThingOnce has a fault that every container of every request shows.
func TestEachThingOnce(t *testing.T) {
	report := run(t, head+`  {{- range $list := list "initContainers" "containers" }}
  {{ $list }}:
  {{- range ternary $.InitContainers $.Containers (eq $list "initContainers") }}
  - {name: {{ .Name }}, image: {{ .Image }}, imagee: x}
  {{- end }}
  {{- end }}
`, api.LevelBaseline)
	if len(report.Findings) != 1 || report.Findings[0].Line != 8 {
		t.Errorf("the findings are %v", report.Findings)
	}
}

func TestSorted(t *testing.T) {
	suite := shipped(t)
	suite.Templates = map[string]string{
		"b.yaml":   "{{ no }}",
		"_a.tpl":   strings.Repeat("\n", 9) + "{{ no }}",
		"pod.yaml": container,
	}
	report, err := lint.Run(lint.Options{Suite: suite, Level: api.LevelBaseline})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 2 || report.Findings[0].String() != `_a.tpl:10: function "no" not defined` || report.Findings[1].File != "b.yaml" {
		t.Errorf("the findings are %v", report.Findings)
	}
}

func TestNoSuchLevel(t *testing.T) {
	if report, err := lint.Run(lint.Options{Suite: shipped(t), Level: "strict"}); err == nil {
		t.Errorf("the report is %v", report)
	}
}

// TestKinds: a kind that the operator has not allowed is a finding, in a file and in
// a patch, and it names the setting.
func TestKinds(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}-x}\n"
	suite := shipped(t)
	suite.Layers = []render.Layer{{Name: "mine", Files: map[string]string{"x.yaml": object}}}
	report, err := lint.Run(lint.Options{Suite: suite})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 1 || !strings.HasPrefix(report.Findings[0].String(), "mine/x.yaml:2: kind ") || !strings.Contains(report.Findings[0].Message, "templates.allowed_kinds") {
		t.Errorf("the findings are %v", report.Findings)
	}
	suite.Config.Templates.AllowedKinds = []string{"v1 ConfigMap"}
	if report, err := lint.Run(lint.Options{Suite: suite}); err != nil || len(report.Findings) > 0 {
		t.Errorf("allowed, the findings are %v (%v)", report.Findings, err)
	}
	suite.Layers[0].Patches = map[string]string{"y.yaml": "apiVersion: v1\nkind: Service\n"}
	if report, err := lint.Run(lint.Options{Suite: suite}); err != nil || len(report.Findings) != 1 || report.Findings[0].File != "mine/y.yaml" {
		t.Errorf("of a patch, the findings are %v (%v)", report.Findings, err)
	}
}

// TestMaxFailed: a template that fails for every request is tried so many times.
func TestMaxFailed(t *testing.T) {
	for limit, want := range map[int]int{3: 3, 0: 50} {
		suite := shipped(t)
		suite.Templates = map[string]string{"pod.yaml": "{{ range 1000 }}{{ end }}{{ .Nope }}"}
		report, err := lint.Run(lint.Options{Suite: suite, MaxFailed: limit})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Findings) != 1 || report.Requests < want || (limit > 0 && report.Requests > want) {
			t.Errorf("with %d, %d requests are rendered and the findings are %v", limit, report.Requests, report.Findings)
		}
	}
}

// TestNamesOfCases: a layer may add what a shipped case happens to have; a request
// that has it as well is refused. What no request could be without it may not.
func TestNamesOfCases(t *testing.T) {
	for name, wanted := range map[string]int{"proxy": 0, "main": 1} {
		suite := shipped(t)
		suite.Layers = []render.Layer{{Name: "mine", Patches: map[string]string{
			"pod.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - {name: " + name + ", image: a}\n",
		}}}
		report, err := lint.Run(lint.Options{Suite: suite})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Findings) != wanted {
			t.Errorf("of a container %s, the findings are %v", name, report.Findings)
		}
	}
}
