package render_test

import (
	"strings"
	"testing"

	"github.com/agynio/k8s-runner/render"
)

func TestCompileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ files, where string }{
		"an open action":          {"a\n{{ .Name", "pod.yaml:2"},
		"an open if":              {"a\n{{ if .Name }}\nb\n", "pod.yaml:"},
		"an unknown function":     {"a\n\n{{ nothing .Name }}", "pod.yaml:3"},
		"an undefined variable":   {"{{ $x }}", "pod.yaml:1"},
		"a part of a file":        {"-- _part.tpl --\n\n{{ define \"x\" }}\n{{ end }\n-- pod.yaml --\na", "_part.tpl:3"},
		"a reserved character":    {"a\nb: \uE000", "pod.yaml:2"},
		"another":                 {"\uE003", "pod.yaml:1"},
		"a function in an arg":    {"a: {{ printf \"%s\" (env \"HOME\") }}", "pod.yaml:1"},
		"a function in a pipe":    {"a: {{ .Name | lookup }}", "pod.yaml:1"},
		"a function in a branch":  {"{{ if false }}\n{{ now }}\n{{ end }}", "pod.yaml:2"},
		"a function in a comment": {"# {{ now }}", "pod.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.Compile(filesOf(c.files))
			if err == nil {
				t.Fatal("it compiles")
			}
			if !strings.HasPrefix(err.Error(), c.where) {
				t.Errorf("the error does not start with %s: %v", c.where, err)
			}
		})
	}
}

// TestFunctionsThatAreNoFunctions has what would read the environment, the
// network, the clock or randomness, change an argument, or make much of little,
// and the renderer's own.
func TestFunctionsThatAreNoFunctions(t *testing.T) {
	for _, name := range strings.Fields(`
		env expandenv getHostByName now date ago htmlDate unixEpoch toDate
		randAlpha randAlphaNum randNumeric randAscii randBytes randInt shuffle uuidv4
		genPrivateKey genCA genSelfSignedCert derivePassword bcrypt htpasswd encryptAES
		repeat until untilStep seq wrap cat keys values set unset merge mergeOverwrite pluck
		tpl lookup getEnv readFile osBase b64dec regexReplaceAll mustToJson toPrettyJson
		_slot _step _enter _leave _include _nindent _indent _toJson _toYaml`) {
		t.Run(name, func(t *testing.T) {
			_, err := render.Compile(map[string]string{"pod.yaml": "a: b\nc: {{ " + name + " }}"})
			if err == nil || !strings.HasPrefix(err.Error(), "pod.yaml:2") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestDigestOfASet(t *testing.T) {
	base := map[string]string{"a.yaml": "x", "_b.tpl": "y"}
	digests := map[string]string{}
	for name, files := range map[string]map[string]string{
		"as it is":      base,
		"another text":  {"a.yaml": "x ", "_b.tpl": "y"},
		"another name":  {"c.yaml": "x", "_b.tpl": "y"},
		"a file more":   {"a.yaml": "x", "_b.tpl": "y", "_c.tpl": ""},
		"texts swapped": {"a.yaml": "y", "_b.tpl": "x"},
	} {
		digest := compile(t, files).Digest()
		if other, same := digests[digest]; same {
			t.Errorf("%q and %q have the digest %s", name, other, digest)
		}
		digests[digest] = name
	}
	if again := compile(t, base).Digest(); digests[again] != "as it is" {
		t.Errorf("the same files have the digest %s this time", again)
	}
}
