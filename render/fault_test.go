package render_test

import (
	"strings"
	"testing"
)

// TestTemplateErrors has templates that render to what no Pod is. Each error
// names the file and the line.
func TestTemplateErrors(t *testing.T) {
	for name, c := range map[string]struct{ files, where string }{
		// Executing.
		"a missing field":           {podWith("  hostname: {{ .Missing }}\n"), "pod.yaml:9:"},
		"a missing key (C20)":       {podWith("  hostname: {{ .Properties.Missing }}\n"), "pod.yaml:9:"},
		"a default of it (C20)":     {podWith("  hostname: {{ .Properties.Missing | default \"x\" }}\n"), "pod.yaml:9:"},
		"a missing part":            {podWith("  hostname: {{ include \"nothing\" . }}\n"), "pod.yaml:9:"},
		"a missing template":        {podWith("  hostname: {{ template \"nothing\" . }}\n"), "pod.yaml:9:"},
		"an error in a part":        {"-- _a.tpl --\n{{ define \"a\" }}\n{{ .Nothing }}{{ end }}\n-- pod.yaml --\n" + podWith("  hostname: {{ include \"a\" . }}\n"), "pod.yaml:9:"},
		"fail":                      {podWith("{{ fail \"no\" }}\n"), "pod.yaml:9:"},
		"division by zero":          {podWith("  priority: {{ div 1 0 }}\n"), "pod.yaml:9:"},
		"index out of range":        {podWith("  hostname: {{ (index .Containers 7).Name }}\n"), "pod.yaml:9:"},
		"wrong type of an argument": {podWith("  hostname: {{ trunc .Containers 7 }}\n"), "pod.yaml:9:"},
		"too few arguments":         {podWith("  hostname: {{ trunc 7 }}\n"), "pod.yaml:9:"},
		"an address":                {podWith("  hostname: {{ printf \"%-[1]5p\" .DNS }}\n"), "pod.yaml:9:"},
		"an error to wrap":          {podWith("  hostname: {{ printf \"%%%w\" .Name }}\n"), "pod.yaml:9:"},
		"range over a string":       {podWith("{{ range .Name }}{{ end }}\n"), "pod.yaml:9:"},

		// YAML.
		"not YAML":                      {podWith("  hostname: a: b\n"), "pod.yaml:9:"},
		"not YAML in the first line":    {"a: b: c\n", "pod.yaml:1:"},
		"far from its start":            {podWith("  nodeSelector:\n    a: b\n    c: \"d\" e\n  hostname: x\n"), "pod.yaml:11:"},
		"after a list over lines":       {podWith("    args: [a,\n      b,\n      c]\n  hostname: \"d\" e\n  subdomain: x\n"), "pod.yaml:12:"},
		"after a long list":             {podWith("    args: [\n" + strings.Repeat("      a,\n", 15) + "      a]\n  hostname: \"d\" e\n"), "pod.yaml:26:"},
		"in a sequence":                 {podWith("    args:\n    - a\n    b: c\n"), "pod.yaml:11:"},
		"in the second document":        {"# nothing\n---\na: b: c\n", "pod.yaml:3:"},
		"an open list":                  {podWith("  hostname: a\n  tolerations: [\n  subdomain: b\n"), "pod.yaml:10:"},
		"a tab":                         {podWith("\thostname: a\n"), "pod.yaml:9:"},
		"an open quote":                 {podWith("  hostname: \"a\n  subdomain: b\n"), "pod.yaml:9:"},
		"a wrong indentation of a part": {"-- _a.tpl --\n{{ define \"a\" -}}\na: b\nc: d\n{{- end }}\n-- pod.yaml --\n" + podWith("  nodeSelector:\n    {{ include \"a\" . }}\n"), "_a.tpl:3: c "},
		"a duplicate key":               {podWith("  hostname: a\n  hostname: b\n"), "pod.yaml:10:"},
		"a duplicate key at the top":    {podWith("") + "kind: Pod\n", "pod.yaml:9:"},
		"a duplicate merged key":        {podWith("  nodeSelector:\n    team: x\n    <<: {{ .Labels }}\n"), "pod.yaml:11:"},
		"a merge of a string":           {podWith("  nodeSelector:\n    <<: {{ .Name }}\n"), "pod.yaml:10:"},
		"an anchor":                     {podWith("  hostname: &a x\n"), "pod.yaml:9:"},
		"an anchor of a mapping":        {podWith("  nodeSelector: &a\n    b: c\n"), "pod.yaml:"},
		"an alias":                      {podWith("  hostname: &a x\n  subdomain: *a\n"), "pod.yaml:9:"},
		"an unknown alias":              {podWith("  hostname: *a\n"), "pod.yaml:"},
		"an alias as a merge":           {podWith("  nodeSelector:\n    <<: *a\n"), "pod.yaml:"},
		"a list as a key":               {podWith("  nodeSelector:\n    ? [a]\n    : b\n"), "pod.yaml:10:"},
		"binary":                        {podWith("  hostname: !!binary YQ==\n"), "pod.yaml:9:"},
		"a tag of one's own":            {podWith("  hostname: !mine a\n"), "pod.yaml:9:"},
		"a set":                         {podWith("  nodeSelector: !!set {a}\n"), "pod.yaml:9:"},
		"not a mapping":                 {"- a\n", "pod.yaml:1"},
		"a scalar":                      {"\n\na\n", "pod.yaml:3"},
		"a forged slot":                 {podWith("  hostname: \"\\uE0000\\uE001\"\n"), "pod.yaml:9:"},
		"a slot forged in pieces":       {podWith("  hostname: \"\\uE0{{/**/}}000\\ue001\"\n"), "pod.yaml:9:"},
		"a slot forged at length":       {podWith("  hostname: \"\\U0000E000-1\\U0000E001\"\n"), "pod.yaml:9:"},
		"a number that is none":         {podWith("  priority: !!int x\n"), "pod.yaml:9:"},
		"a number too large":            {podWith("  priority: 123456789012345678901234567890\n"), "pod.yaml:9:"},

		// Types.
		"an unknown field":            {podWith("  hostnam: a\n"), "pod.yaml:9:"},
		"an unknown field at the top": {podWith("") + "speck: {}\n", "pod.yaml:9:"},
		"another case":                {podWith("  hostName: a\n"), "pod.yaml:9:"},
		"an unknown field in a list":  {podWith("    ports:\n    - containerPort: 1\n    - container: 1\n"), "pod.yaml:11:"},
		"an unknown field in a value": {podWith("  securityContext: {{ dict \"fsgroup\" 1 }}\n"), "pod.yaml:9:"},
		"a number for a string (C15)": {podWith("    env:\n    - name: A\n      value: 0\n"), "pod.yaml:11:"},
		"a boolean for a string":      {podWith("    env:\n    - name: A\n      value: true\n"), "pod.yaml:11:"},
		"a number in a map":           {podWith("  nodeSelector: {a: b, c: 1}\n"), "pod.yaml:9:"},
		"a string for a number":       {podWith("  priority: \"1\"\n"), "pod.yaml:9:"},
		"half a number":               {podWith("  priority: 1.5\n"), "pod.yaml:9:"},
		"a number over 32 bits":       {podWith("  priority: 5000000000\n"), "pod.yaml:9:"},
		"yes for true":                {podWith("  hostNetwork: yes\n"), "pod.yaml:9:"},
		"a string for a list":         {podWith("    args: run\n"), "pod.yaml:9:"},
		"a list for a mapping":        {podWith("  securityContext: []\n"), "pod.yaml:9:"},
		"a mapping for a string":      {podWith("  hostname: {a: b}\n"), "pod.yaml:9:"},
		"a bad quantity":              {podWith("    resources:\n      limits: {cpu: lots}\n"), "pod.yaml:10:"},
		"a part as a string":          {"-- _a.tpl --\n{{ define \"a\" }}a: b{{ end }}\n-- pod.yaml --\n" + podWith("  {{- $a := include \"a\" . }}\n  nodeSelector: {{ $a }}\n"), "pod.yaml:10:"},
		"null in a list":              {podWith("    args: {{ list nil 1 }}\n"), "pod.yaml:9:"},

		// Strings with values inside.
		"a list in a string":     {podWith("  hostname: \"x{{ .Containers }}\"\n"), "pod.yaml:9:"},
		"a map in a string":      {podWith("  hostname: x{{ .Labels }}\n"), "pod.yaml:9:"},
		"a map as a key":         {podWith("  nodeSelector:\n    {{ .Labels }}: x\n"), "pod.yaml:10:"},
		"nil in a string":        {podWith("  hostname: \"x{{ (index .Containers 0).ReadOnlyRoot }}\"\n"), "pod.yaml:9:"},
		"a list that is quoted":  {podWith("  hostname: {{ .Containers | quote }}\n"), "pod.yaml:9:"},
		"a value that is a func": {podWith("  hostname: {{ .Name.String }}\n"), "pod.yaml:9:"},

		// Lists whose entries have keys.
		"the same variable":  {podWith("    env:\n    - name: A\n    - name: A\n"), "pod.yaml:11:"},
		"the same mount":     {podWith("    volumeMounts:\n    - {name: x, mountPath: /x}\n    - {name: y, mountPath: /x/}\n"), "pod.yaml:11:"},
		"the same container": {podWith("  - name: proxy\n  - name: proxy\n"), "pod.yaml:10:"},
		"init and not":       {podWith("  - name: proxy\n  initContainers:\n  - name: proxy\n"), "pod.yaml:9:"},
		"the same volume":    {podWith("  volumes:\n  - name: a\n  - name: a\n"), "pod.yaml:11:"},

		// Objects.
		"nothing":                {"# nothing\n", "pod.yaml:"},
		"no file":                {"-- _a.tpl --\n", ""},
		"an empty file":          {"-- pod.yaml --\n", "pod.yaml"},
		"two Pods":               {podWith("") + "---\n" + podWith(""), "pod.yaml:10:"},
		"two Pods in two files":  {"-- a.yaml --\n" + podWith("") + "-- b.yaml --\n" + podWith(""), "b.yaml:1:"},
		"a Node":                 {"apiVersion: v1\nkind: Node\n", "pod.yaml:2:"},
		"a Pod of another group": {"apiVersion: apps/v1\nkind: Pod\n", "pod.yaml:2:"},
		"no kind":                {"apiVersion: v1\n", "pod.yaml:1:"},
		"a kind that is none":    {"apiVersion: v1\nkind: [Pod]\n", "pod.yaml:2:"},
	} {
		t.Run(name, func(t *testing.T) {
			err := renderError(t, filesOf(c.files))
			if !strings.HasPrefix(err.Error(), c.where) {
				t.Errorf("the error does not start with %s: %v", c.where, err)
			}
		})
	}
}

// TestErrorsNameEveryFault has three in one Pod.
func TestErrorsNameEveryFault(t *testing.T) {
	err := renderError(t, filesOf(podWith("  hostnam: a\n  priority: x\n    \n  nodeSelector: {a: 1}\n")))
	for _, want := range []string{"pod.yaml:9: spec.hostnam ", "pod.yaml:10: spec.priority ", "pod.yaml:12: spec.nodeSelector.a "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// TestErrorsSayWhy has reasons that hold no value of the request.
func TestErrorsSayWhy(t *testing.T) {
	for line, want := range map[string]string{
		"{{ .Properties.Missing }}":                                          "no entry for key \"Missing\"",
		"{{ .Missing }}":                                                     "can't evaluate field Missing",
		"{{ range .Name }}{{ end }}":                                         "range can't iterate over it",
		"{{ include \"nothing\" . }}":                                        "no part of that name",
		"{{ template \"nothing\" . }}":                                       "\"nothing\" not defined",
		"{{ trunc 1 }}":                                                      "wrong number of arguments",
		"{{ trunc .Labels 1 }}":                                              "expected int; got map[string]string",
		"{{ eq .Name .FSGroup }}":                                            "incompatible types",
		"{{ nindent 65 \"a\" }}":                                             "between 0 and 64",
		"{{ dict \"a\" }}":                                                   "keys and values",
		"{{ dict 1 2 }}":                                                     "keys of a dict are strings",
		"{{ hasKey .Name \"a\" }}":                                           "takes a map",
		"{{ regexMatch \"(\" \"a\" }}":                                       "regular expression has an error",
		"  priority: {{ .Name }}":                                            "spec.priority must be a whole number, not this string",
		"  hostname: {{ .FSGroup }}":                                         "spec.hostname must be a string, not this number; put it in quotes",
		"  hostname: \"{{ .Labels }}\"":                                      "use toJson and quote",
		"  overhead: {cpu: lots}":                                            "spec.overhead.cpu must be a valid Quantity",
		"  nodeSelector: {a: b, a: c}":                                       "the key \"a\" is there twice",
		"  nodeSelector: {{ dict \"a\" 1 }}":                                 "spec.nodeSelector.(a printed key) must be a string",
		"  nodeSelector: {b: 1}":                                             "spec.nodeSelector.b must be a string",
		"  securityContext: {{ dict \"fsGroup\" \"x\" }}":                    "spec.securityContext.fsGroup must be a whole number",
		"  securityContext: {{ dict \"fsgroup\" 1 }}":                        "spec.securityContext.(a printed key) is an unknown field",
		"  securityContext: {fsgroup: 1}":                                    "spec.securityContext.fsgroup is an unknown field",
		"  nodeSelector: {team: x, <<: {{ .Labels }}}":                       "a key of << is there twice",
		"  nodeSelector: {team: x, {{ print \"team\" }}: }":                  "(a printed key) is there twice",
		"  hostname: a: b":                                                   "mapping values are not allowed",
		"{{ $l := list }}{{ range 100 }}{{ $l = list $l }}{{ end }}{{ $l }}": "deeper than 64",
		"{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}": "deeper than 64",
	} {
		t.Run(line, func(t *testing.T) {
			if err := renderError(t, filesOf(podWith(line+"\n"))); !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not say %q: %v", want, err)
			}
		})
	}
}

// TestErrorsInParts has lines that come from a part, inside a loop, below text
// that the part did not print.
func TestErrorsInParts(t *testing.T) {
	err := renderError(t, filesOf(`-- _a.tpl --
{{- /* Two parts. */ -}}
{{ define "ok" -}}
name: {{ .Name }}
image: {{ .Image }}
{{- end }}
{{ define "bad" -}}
name: {{ .Name }}
env:
- name: A
  value: 1
{{- end }}
-- pod.yaml --
apiVersion: v1
kind: Pod
spec:
  containers:
  {{- range $i, $c := .Containers }}
  {{- if eq $i 1 }}
  -{{ include "bad" . | nindent 4 }}
  {{- else }}
  -{{ include "ok" . | nindent 4 }}
  {{- end }}
  {{- end }}
`))
	if want := "_a.tpl:10: spec.containers[1].env[0].value "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error does not start with %q: %v", want, err)
	}
}

// TestErrorsQuoteNoValue has functions and places whose own errors would.
func TestErrorsQuoteNoValue(t *testing.T) {
	const value = "(index (index .Containers 0).Env 0).Value"
	for name, line := range map[string]string{
		"range":            "{{ range " + value + " }}{{ end }}",
		"fail":             "{{ fail " + value + " }}",
		"fail with more":   "{{ fail (printf \"bad %s\" " + value + ") }}",
		"index":            "{{ index .Containers " + value + " }}",
		"index of a map":   "  hostname: {{ (index (dict " + value + " 1) \"x\").y.z }}",
		"include":          "{{ include " + value + " . }}",
		"eq":               "{{ if eq " + value + " 1 }}{{ end }}",
		"eq of a map":      "{{ if eq (dict \"a\" " + value + ") (dict \"a\" " + value + ") }}{{ end }}",
		"lt":               "{{ if lt " + value + " 1 }}{{ end }}",
		"a regular expr":   "{{ regexMatch (printf \"(%s\" " + value + ") \"x\" }}",
		"an indentation":   "{{ nindent " + value + " \"x\" }}",
		"a number":         "  priority: {{ " + value + " }}",
		"a time":           "  priority: {{ " + value + " | int }}\n  activeDeadlineSeconds: {{ " + value + " }}",
		"a quantity":       "    resources:\n      limits: {cpu: {{ " + value + " }}}",
		"a boolean":        "  hostNetwork: {{ " + value + " }}",
		"a struct":         "  securityContext: {{ " + value + " }}",
		"a list":           "  tolerations: {{ " + value + " }}",
		"a port":           "    livenessProbe: {httpGet: {port: {{ dict \"a\" " + value + " }}}}",
		"a port as a list": "    livenessProbe: {httpGet: {port: [{{ " + value + " }}]}}",
		"a key":            "  nodeSelector:\n    {{ " + value + " }}: a\n    {{ " + value + " }}: b",
		"a second key":     "  nodeSelector:\n    <<: {{ dict " + value + " 1 }}\n    {{ " + value + " }}: b",
		"an unknown field": "  {{ " + value + " }}: a",
		"a part of one":    "  x-{{ " + value + " }}: a",
		"one in a part":    "  securityContext:\n    {{ " + value + " }}: a",
		"one at the top":   "{{ " + value + " }}: a",
		"one of a value":   "  securityContext: {{ dict " + value + " 1 }}",
		"one deep in it":   "  securityContext: {{ dict \"seLinuxOptions\" (dict " + value + " 1) }}",
		"one of a merge":   "  securityContext:\n    <<: {{ dict " + value + " 1 }}",
		"a key of a map":   "  nodeSelector: {{ dict " + value + " 1 }}",
		"and below it":     "  overhead:\n    {{ " + value + " }}: [a]",
		"a key's own name": "  overhead:\n    \"{{ " + value + " }}\": lots",
		"a kind":           "  nodeSelector: {}\nkindly: {{ " + value + " }}",
		"a name":           "    env:\n    - {name: A, value: {{ dict \"a\" " + value + " }}}",
		"slice":            "{{ slice " + value + " 99 }}",
		"call":             "{{ call " + value + " }}",
		"a field of it":    "{{ (" + value + ").Field }}",
		"not YAML":         "  a: {{ " + value + " }}: {{ " + value + " }}: x",
		"an alias":         "  hostname: *{{ " + value + " }}",
		"an anchor":        "  hostname: &{{ " + value + " }} x",
		"a tag":            "  hostname: !{{ " + value + " }} x",
		"a main container": "  - name: {{ " + value + " }}\n    image: {{ dict \"a\" 1 }}",
	} {
		t.Run(name, func(t *testing.T) {
			err := renderError(t, filesOf(podWith(line+"\n")))
			if !strings.HasPrefix(err.Error(), "pod.yaml:") {
				t.Errorf("the error does not name the file: %v", err)
			}
		})
	}
}
