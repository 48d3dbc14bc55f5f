// Package broken breaks templates, so that tests can show that no broken one
// counts.
package broken

import (
	"iter"
	"maps"
	"math/rand"
	"regexp"
	"slices"
	"strings"
)

// Template is a template of which one line is broken.
type Template struct {
	// How says in which way.
	How  string
	File string
	// Line is from 1.
	Line int
	// Text is all of the file.
	Text string
	// Harmless is true where the break may change nothing, as in a comment.
	Harmless bool
}

// Broken returns the line that is broken.
func (t Template) Broken() string { return strings.Split(t.Text, "\n")[t.Line-1] }

// Catalog reaches, for every request, what the shipped templates make of a flavor.
const Catalog = `
flavors: [{name: full, default: true, nodeSelector: {a: b}, tolerations: [{operator: Exists}], priorityClass: high, runtimeClass: kata-qemu, supplementalGroups: [1],
  resources: {limitsCpu: "1"}, sidecarResources: {limitsCpu: "1"}}]
storageClasses: [{name: fast, storageClassName: ssd}]
`

// Templates breaks files, which are texts by name: one line in one way at a time,
// each way in turn, at lines in an order that seed chooses. It ends when every way
// was tried at every line.
func Templates(files map[string]string, seed int64) iter.Seq[Template] {
	return func(yield func(Template) bool) {
		random := rand.New(rand.NewSource(seed)) //nolint:gosec // the same seed breaks the same lines
		all := breakers()
		var ways [][]Template
		for _, how := range slices.Sorted(maps.Keys(all)) {
			var way []Template
			for _, file := range slices.Sorted(maps.Keys(files)) {
				way = append(way, ofFile(file, files[file], how, all[how])...)
			}
			random.Shuffle(len(way), func(i, j int) { way[i], way[j] = way[j], way[i] })
			ways = append(ways, way)
		}
		for i := 0; len(ways) > 0; i++ {
			ways = slices.DeleteFunc(ways, func(way []Template) bool { return i >= len(way) })
			for _, way := range ways {
				if !yield(way[i]) {
					return
				}
			}
		}
	}
}

// ofFile breaks each line of a file that can be broken in one way.
func ofFile(name, text, how string, breaks func(string) string) []Template {
	var out []Template
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		changed := breaks(line)
		if changed == "" || changed == line {
			continue
		}
		lines[i] = changed
		t := Template{How: how, File: name, Line: i + 1, Text: strings.Join(lines, "\n")}
		t.Harmless = harmless(t, strings.TrimSpace(line), strings.Join(lines[:i], "\n"))
		out = append(out, t)
		lines[i] = line
	}
	return out
}

// breakers break a line, or return "" where they cannot.
func breakers() map[string]func(line string) string {
	indent := func(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " -"))] }
	field := regexp.MustCompile(`\.[A-Z][A-Za-z]+`)
	key := regexp.MustCompile(`^( *(?:- )?)([a-z][A-Za-z]+):( |$)`)
	return map[string]func(string) string{
		"an open action":      func(l string) string { return cutOnce(l, " }}", "") },
		"an unknown function": func(l string) string { return cutOnce(l, "{{ .", "{{ nope .") },
		"the environment":     func(l string) string { return cutOnce(l, "{{ .", `{{ env "TOKEN" }}{{ .`) },
		"an unknown field":    func(l string) string { return replaceFirst(field, l, ".Nope") },
		"an unknown part":     func(l string) string { return cutOnce(l, `include "`, `include "no-`) },
		"an unknown key":      func(l string) string { return replaceKey(key, l, "nope") },
		"a number as a key":   func(l string) string { return replaceKey(key, l, "? [a]") },
		"a key twice":         func(l string) string { return twice(key, l) },
		"not YAML":            func(l string) string { return indent(l) + "{unclosed: [\n" + l },
		"a tab":               func(l string) string { return "\t" + l },
		"an alias":            func(l string) string { return cutOnce(l, ": {{", ": &a {{") },
		"a mapping for text": func(l string) string {
			return replaceFirst(regexp.MustCompile(`: (Never|Pod|v1|main|RuntimeDefault|OnRootMismatch)$`), l, ": {a: b}")
		},
		"a reserved character": func(l string) string { return l + "\uE000" },
		"an end too many":      func(l string) string { return "{{ end }}" + l },
		"host network": func(l string) string {
			return cutOnce(l, "  restartPolicy: Never", "  hostNetwork: true\n  restartPolicy: Never")
		},
		"an endless loop": func(l string) string {
			return `{{ define "loop" }}{{ include "loop" . }}{{ end }}{{ include "loop" . }}` + l
		},
	}
}

func cutOnce(line, old, with string) string {
	if !strings.Contains(line, old) {
		return ""
	}
	return strings.Replace(line, old, with, 1)
}

func replaceFirst(pattern *regexp.Regexp, line, with string) string {
	at := pattern.FindStringSubmatchIndex(line)
	if at == nil {
		return ""
	}
	return line[:at[0]] + string(pattern.ExpandString(nil, with, line, at)) + line[at[1]:]
}

// twice writes a key once more below itself, also the first of a list's entry.
func twice(key *regexp.Regexp, line string) string {
	found := key.FindStringSubmatch(line)
	if found == nil {
		return ""
	}
	return line + "\n" + strings.Replace(found[1], "-", " ", 1) + found[2] + ":" + line[len(found[0])-len(found[3]):]
}

func replaceKey(pattern *regexp.Regexp, line, name string) string {
	return replaceFirst(pattern, line, "${1}"+name+":$3")
}

// harmless: what stands in a comment, a tab in white space between documents, and
// what a file of parts prints outside of them break nothing, and the names of
// resources are free.
func harmless(t Template, line, before string) bool {
	inComment := strings.Count(before, "{{- /*") > strings.Count(before, "*/") || strings.Contains(line, "/*") || strings.HasPrefix(line, "#")
	outside := strings.HasPrefix(t.File, "_") && (line == "" || strings.HasPrefix(line, "{{- define"))
	ofResource := t.How == "an unknown key" && strings.HasSuffix(line, "{{ .Size }}")
	return inComment || outside || ofResource || t.How == "a tab"
}
