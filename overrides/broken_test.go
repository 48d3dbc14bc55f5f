package overrides

import (
	"context"
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
)

// breakers break a template at a line, or return "" where they cannot.
func breakers() map[string]func(line string, r *rand.Rand) string {
	indent := func(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " -"))] }
	field := regexp.MustCompile(`\.[A-Z][A-Za-z]+`)
	key := regexp.MustCompile(`^( *(?:- )?)([a-z][A-Za-z]+):( |$)`)
	return map[string]func(string, *rand.Rand) string{
		"an open action":      func(l string, _ *rand.Rand) string { return cutOnce(l, " }}", "") },
		"an unknown function": func(l string, _ *rand.Rand) string { return cutOnce(l, "{{ .", "{{ nope .") },
		"the environment":     func(l string, _ *rand.Rand) string { return cutOnce(l, "{{ .", `{{ env "TOKEN" }}{{ .`) },
		"an unknown field":    func(l string, _ *rand.Rand) string { return replaceFirst(field, l, ".Nope") },
		"an unknown part":     func(l string, _ *rand.Rand) string { return cutOnce(l, `include "`, `include "no-`) },
		"an unknown key":      func(l string, r *rand.Rand) string { return replaceKey(key, l, fmt.Sprintf("nope%d", r.Intn(100))) },
		"a number as a key":   func(l string, _ *rand.Rand) string { return replaceKey(key, l, "? [a]") },
		"a key twice":         func(l string, _ *rand.Rand) string { return replaceFirst(key, l, "$0$3\n$1$2:$3") },
		"not YAML":            func(l string, _ *rand.Rand) string { return indent(l) + "{unclosed: [\n" + l },
		"a tab":               func(l string, _ *rand.Rand) string { return "\t" + l },
		"an alias":            func(l string, _ *rand.Rand) string { return cutOnce(l, ": {{", ": &a {{") },
		"a mapping for text": func(l string, _ *rand.Rand) string {
			return replaceFirst(regexp.MustCompile(`: (Never|Pod|v1|main|RuntimeDefault|OnRootMismatch)$`), l, ": {a: b}")
		},
		"a reserved character": func(l string, _ *rand.Rand) string { return l + "\uE000" },
		"an end too many":      func(l string, _ *rand.Rand) string { return "{{ end }}" + l },
		"host network": func(l string, _ *rand.Rand) string {
			return cutOnce(l, "  restartPolicy: Never", "  hostNetwork: true\n  restartPolicy: Never")
		},
		"an endless loop": func(l string, _ *rand.Rand) string {
			return `{{ define "loop" }}{{ include "loop" . }}{{ end }}{{ include "loop" . }}` + l
		},
	}
}

func cutOnce(line, old, new string) string {
	if !strings.Contains(line, old) {
		return ""
	}
	return strings.Replace(line, old, new, 1)
}

func replaceFirst(pattern *regexp.Regexp, line, with string) string {
	at := pattern.FindStringSubmatchIndex(line)
	if at == nil {
		return ""
	}
	return line[:at[0]] + string(pattern.ExpandString(nil, with, line, at)) + line[at[1]:]
}

func replaceKey(pattern *regexp.Regexp, line, name string) string {
	return replaceFirst(pattern, line, "${1}"+strings.ReplaceAll(name, "$", "$$")+":$3")
}

// TestBrokenTemplates breaks the shipped templates, as an operator's file and at a
// line of a seed's choice, in every way that the breakers know: each is rejected
// with a file and a line.
func TestBrokenTemplates(t *testing.T) {
	const wanted, seed = 200, 20260731
	suite, err := golden.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	// A catalog and settings that reach every branch of the shipped templates.
	var faults []catalog.Fault
	suite.Catalog, faults = catalog.Parse([]byte(`
flavors: [{name: full, nodeSelector: {a: b}, tolerations: [{operator: Exists}], priorityClass: high, runtimeClass: kata-qemu, supplementalGroups: [1],
  resources: {limitsCpu: "1"}, sidecarResources: {limitsCpu: "1"}}]
storageClasses: [{name: fast, storageClassName: ssd}]
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	suite.Config.Security.RunAsUser = 1000
	suite.Config.NetworkPolicy.EgressCIDRs = []string{"10.0.0.0/8"}
	suite.Config.NetworkPolicy.Enabled = true
	probe := &Probe{Suite: suite, DryRun: func(context.Context, *unstructured.Unstructured) error { return nil }}
	all := breakers()
	var names, files []string
	for name := range all {
		names = append(names, name)
	}
	for file := range suite.Templates {
		files = append(files, file)
	}
	slices.Sort(names)
	slices.Sort(files)
	random := rand.New(rand.NewSource(seed))
	where := regexp.MustCompile(`^(mine/)?[a-z_-]+\.(yaml|tpl):\d+: `)
	seen, kinds := map[string]bool{}, map[string]int{}
	for tries := 0; len(seen) < wanted && tries < 100*wanted; tries++ {
		file, name := files[random.Intn(len(files))], names[tries%len(names)]
		lines := strings.Split(suite.Templates[file], "\n")
		i := random.Intn(len(lines))
		broken := all[name](lines[i], random)
		if broken == "" || broken == lines[i] {
			continue
		}
		lines[i] = broken
		text := strings.Join(lines, "\n")
		if seen[file+text] {
			continue
		}
		_, err := probe.Probe(t.Context(), []render.Layer{{Name: "mine", Files: map[string]string{file: text}}})
		if err == nil {
			if !harmless(name, lines[i], suite.Templates[file], i) {
				t.Errorf("%s at %s:%d is accepted: %q", name, file, i+1, lines[i])
			}
			continue
		}
		seen[file+text] = true
		kinds[name]++
		if !where.MatchString(err.Error()) {
			t.Errorf("%s at %s:%d is rejected without a place: %v", name, file, i+1, err)
		}
	}
	if len(seen) < wanted {
		t.Errorf("only %d were rejected", len(seen))
	}
	t.Logf("seed %d: %d were rejected, by kind %v", seed, len(seen), kinds)
}

// harmless: what stands in a comment, or in white space between documents, breaks
// nothing.
func harmless(name, line, text string, i int) bool {
	inComment := strings.Count(strings.Join(strings.Split(text, "\n")[:i], "\n"), "{{- /*") > strings.Count(strings.Join(strings.Split(text, "\n")[:i], "\n"), "*/")
	isResource := name == "an unknown key" && strings.HasSuffix(line, "{{ .Size }}") // whose names are free
	return inComment || isResource || strings.Contains(line, "/*") || strings.HasPrefix(strings.TrimSpace(line), "#") || strings.TrimSpace(line) == "" || name == "a tab"
}
