//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agynio/k8s-runner/workload"
)

// testBounds lays templates that do not end, or take all memory there is: each is
// rejected in bounded time, and workloads are started meanwhile as before.
func testBounds(t *testing.T, r *runner, o *operator) {
	const limit, slowest = 15 * time.Second, 2 * time.Second
	const bound = "more than a render may|more than 4 MiB|deeper than 64"
	client := r.keepStarting(t)
	for _, c := range []struct{ name, text, where, reason string }{
		{"prints without end", "{{ range 1000000000 }}\nx{{ end }}", "1", bound},
		{"prints much at once", `{{ range 100000 }}{{ printf "%1000000d" 1 }}{{ end }}`, "1", bound},
		{"doubles a text", `{{ $x := "12345678" }}{{ range 64 }}{{ $x = print $x $x }}{{ end }}{{ $x }}`, "1", bound},
		{"doubles a list", `{{ $x := list 1 }}{{ range 64 }}{{ $x = concat $x $x }}{{ end }}`, "1", bound},
		{"ranges within ranges", "\n{{ range 1000 }}{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}{{ end }}", "2", bound},
		{"repeats", `{{ repeat 1000000000 "x" }}`, "1", `function "repeat" not defined`},
		{"includes itself", `{{ define "loop" }}{{ include "loop" . }}{{ end }}{{ include "loop" . }}`, "1", bound},
		{"includes itself twice", `{{ define "twice" }}{{ include "twice" . }}{{ include "twice" . }}{{ end }}{{ include "twice" . }}`, "1", bound},
		{"calls itself", `{{ define "self" }}{{ template "self" . }}{{ end }}{{ template "self" . }}`, "1", bound},
		{"nests a value", `{{ $x := dict }}{{ range 1000 }}{{ $x = dict "a" $x }}{{ end }}{{ toJson $x }}`, "1", bound},
	} {
		begin := time.Now()
		reason := o.rejected(t, o.lay(t, "endless", workload.TemplateFiles, map[string]string{"endless.yaml": c.text}))
		took := time.Since(begin)
		t.Logf("what %s is rejected after %s", c.name, took.Round(time.Millisecond))
		if !strings.HasPrefix(reason, "endless/endless.yaml:"+c.where+":") || !regexp.MustCompile(c.reason).MatchString(reason) {
			t.Errorf("what %s is rejected with %s", c.name, reason)
		}
		if took > limit {
			t.Errorf("what %s is rejected after %s", c.name, took)
		}
	}
	busy := client.stop(t)
	report(t, "while templates without end are rejected", busy)
	if p99 := percentile(busy, 99); p99 > slowest {
		t.Errorf("a start takes %s", p99)
	}
}
