package render_test

import (
	"strings"
	"testing"

	"github.com/agynio/k8s-runner/render"
)

// FuzzTemplate compiles arbitrary templates: they never panic, and no error
// holds a secret of the request or a mark of the renderer.
func FuzzTemplate(f *testing.F) {
	for _, files := range idioms(f) {
		f.Add(files["pod.yaml"])
	}
	f.Add(podWith("  hostname: {{ printf \"%s\" (index (index .Containers 0).Env 0).Value }}"))
	f.Add("a: \"\\uE000-1\\uE001\"")
	f.Add("? [a]\n: *b")
	spec := specOf(f, someRequest)
	f.Fuzz(func(t *testing.T, text string) {
		set, err := render.Compile(map[string]string{"pod.yaml": text})
		if err != nil {
			return
		}
		_, err = set.Render(spec, noPlan, settings)
		switch {
		case err == nil:
		case strings.Contains(err.Error(), secret) && !strings.Contains(text, secret):
			t.Errorf("the error holds a secret: %v", err)
		case strings.ContainsAny(err.Error(), "\uE000\uE001\uE002\uE003"):
			t.Errorf("the error holds a slot or a mark: %q", err)
		case !strings.HasPrefix(err.Error(), "pod.yaml"):
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}
