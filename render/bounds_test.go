package render_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Bounds of a render that the tests insist on. They are wide: the machine may
// be busy, and the race detector is slow.
const (
	maxTime  = time.Minute
	maxAlloc = 1 << 30
)

// endsByItself has what is refused or harmless.
var endsByItself = map[string]bool{
	"a width": true, "a width from an argument": true, "a quantity": true, "an overlong regular expression": true,
}

// TestRendersEnd has templates that would not end, or would fill the memory.
func TestRendersEnd(t *testing.T) {
	big := `{{ $s := "aaaaaaaaaaaaaaaa" }}{{ range 16 }}{{ $s = printf "%s%s" $s $s }}{{ end }}` // 1 MiB
	list := `{{ $l := list 1 2 3 4 }}{{ range 14 }}{{ $l = concat $l $l }}{{ end }}`             // 65536 items
	pattern := `"` + strings.Repeat("(a{1000})", 25) + `b"`
	place := regexp.MustCompile(`^pod\.yaml:\d+:`)
	for name, text := range map[string]string{
		"a template calls itself":           `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
		"a part includes itself":            `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
		"as a string":                       `{{ define "a" }}{{ include "a" . | quote }}{{ end }}{{ include "a" . | quote }}`,
		"two take turns":                    `{{ define "a" }}{{ template "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
		"a tree of parts":                   `{{ define "a" }}{{ if lt . 40 }}{{ template "a" (add . 1) }}{{ template "a" (add . 1) }}{{ end }}{{ end }}{{ template "a" 0 }}`,
		"a long loop":                       `{{ range 1000000000 }}{{ end }}`,
		"a long loop that prints":           `{{ range 1000000000 }}a{{ end }}`,
		"a long loop that prints values":    `{{ range 1000000000 }}{{ $ }}{{ end }}`,
		"a long loop that includes":         `{{ define "a" }}{{ end }}{{ range 1000000000 }}{{ include "a" . }}{{ end }}`,
		"a long loop that compares":         `{{ range 1000000000 }}{{ if eq 1 2 }}{{ end }}{{ end }}`,
		"a long loop that continues":        `{{ range 1000000000 }}{{ continue }}{{ end }}`,
		"loops in loops":                    strings.Repeat(`{{ range 1000 }}`, 10) + strings.Repeat(`{{ end }}`, 10),
		"loops over a list":                 list + strings.Repeat(`{{ range $l }}`, 4) + strings.Repeat(`{{ end }}`, 4),
		"a string that doubles":             `{{ $s := "a" }}{{ range 60 }}{{ $s = printf "%s%s" $s $s }}{{ end }}`,
		"with print":                        `{{ $s := "a" }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}`,
		"with js":                           `{{ $s := "\\" }}{{ range 60 }}{{ $s = js $s }}{{ end }}`,
		"with b64enc":                       `{{ $s := "a" }}{{ range 200 }}{{ $s = b64enc $s }}{{ end }}`,
		"with toJson":                       `{{ $s := "\"" }}{{ range 60 }}{{ $s = toJson $s }}{{ end }}`,
		"with quote":                        `{{ $s := "a" }}{{ range 60 }}{{ $s = quote (toJson (list $s $s)) }}{{ end }}`,
		"with join":                         `{{ $s := "aa" }}{{ range 60 }}{{ $s = join $s (list $s $s $s) }}{{ end }}`,
		"with replace":                      `{{ $s := "aa" }}{{ range 60 }}{{ $s = replace "a" $s $s }}{{ end }}`,
		"with an include":                   `{{ define "a" }}{{ . }}{{ . }}{{ end }}{{ $s := "a" }}{{ range 60 }}{{ $s = include "a" $s }}{{ end }}`,
		"with nindent":                      `{{ $s := "\n\n" }}{{ range 1000000 }}{{ $s = nindent 64 $s }}{{ end }}`,
		"a join of much":                    big + list + `{{ join $s $l }}`,
		"a replacement of much":             big + `{{ replace "a" $s $s }}`,
		"a replacement of nothing":          big + `{{ replace "" $s $s }}`,
		"an indentation of much":            big + `{{ $s = replace "a" "\n" $s }}{{ $x := indent 64 $s }}`,
		"a printed indentation of much":     `{{ define "a" }}{{ range 100000 }}` + strings.Repeat("\n", 40) + `{{ end }}{{ end }}{{ include "a" . | nindent 64 }}`,
		"a width":                           `{{ printf "%1000000000d" 1 }}`,
		"many widths":                       `{{ printf "` + strings.Repeat("%999999[1]d", 1000) + `" 1 }}`,
		"many precisions":                   `{{ printf "` + strings.Repeat("%.999999[1]f", 1000) + `" 1.0 }}`,
		"a width from an argument":          `{{ range 100000 }}{{ $x := printf "%*d" 999999 1 }}{{ end }}`,
		"an argument many times":            big + `{{ printf "` + strings.Repeat("%[1]s", 10000) + `" $s }}`,
		"an argument many times, quoted":    big + `{{ printf "` + strings.Repeat("%[1]q", 10000) + `" $s }}`,
		"an argument many times, unprinted": big + `{{ printf "` + strings.Repeat("%[1]z%[1]T%[1]!", 10000) + `" $s }}`,
		"arguments too many":                big + `{{ printf "" ` + strings.Repeat("$s ", 1000) + ` }}`,
		"a quantity":                        "apiVersion: v1\nkind: Pod\nspec: {overhead: {cpu: 1e-99999999}}",
		"a list that doubles":               `{{ $l := list 1 }}{{ range 60 }}{{ $l = concat $l $l }}{{ end }}`,
		"a list that grows":                 `{{ $l := list }}{{ range 1000000 }}{{ $l = append $l 1 }}{{ end }}`,
		"a list of itself":                  `{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ $l }}`,
		"a list of itself as JSON":          `{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ $x := toJson $l }}`,
		"a list of itself as text":          `{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ $x := printf "%v" $l }}`,
		"a list of itself compared":         `{{ $l := list 1 }}{{ $m := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ $m = list $m $m }}{{ end }}{{ $x := has $l (list $m) }}`,
		"a map of itself":                   `{{ $d := dict }}{{ range 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ $d }}`,
		"a deep list":                       `{{ $l := list }}{{ range 100000 }}{{ $l = list $l }}{{ end }}{{ $l }}`,
		"a deep list as text":               `{{ $l := list }}{{ range 100000 }}{{ $l = list $l }}{{ end }}{{ $x := toString $l }}`,
		"a deep list compared":              `{{ $l := list }}{{ range 100000 }}{{ $l = list $l }}{{ end }}{{ $x := uniq (list $l $l) }}`,
		"deep JSON":                         big + `{{ $x := fromJson (replace "a" "[" $s) }}{{ $x }}` + `{{ range 1000000000 }}{{ end }}`,
		"wide JSON":                         big + `{{ $j := printf "[%s0]" (replace "a" "{}," (trunc 1000000 $s)) }}{{ range 1000 }}{{ $x := fromJson $j }}{{ end }}`,
		"each with each":                    `{{ define "n" }}{{ range 20000 }}{{ . }},{{ end }}{{ end }}{{ $x := uniq (splitList "," (include "n" .)) }}`,
		"each with each, long":              big + `{{ $s = trunc 10000 $s }}{{ $m := list }}{{ range 1000 }}{{ $m = append $m (printf "%s%d" $s .) }}{{ end }}{{ $x := uniq $m }}`,
		"a long list without":               big + list + `{{ range 1000000 }}{{ $x := without $l $s }}{{ end }}`,
		"a long list searched":              list + `{{ range 1000000 }}{{ $x := has 5 $l }}{{ end }}`,
		"characters":                        big + `{{ range 1000 }}{{ $x := splitList "" $s }}{{ end }}`,
		"a regular expression":              big + `{{ range 1000000 }}{{ $x := regexMatch "(a|b|c)*d" $s }}{{ end }}`,
		"a long regular expression":         big + `{{ $x := regexMatch ` + pattern + ` $s }}`,
		"an overlong regular expression":    `{{ $x := regexMatch "` + strings.Repeat("a{1000}", 1000) + `" "a" }}`,
		"much printed":                      big + `{{ range 1000 }}{{ $s }}{{ end }}`,
		"a Pod with much text":              podWith(`{{ range 100 }}` + strings.Repeat("# "+strings.Repeat("a", 1000)+"\n", 60) + `{{ end }}`),
		"much text":                         `{{ range 1000000 }}` + strings.Repeat("a", 1000) + `{{ end }}`,
		"much text in parts":                `{{ define "a" }}{{ range 1000 }}` + strings.Repeat("a", 1000) + `{{ end }}{{ end }}{{ range 1000 }}{{ $x := include "a" . }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, map[string]string{"pod.yaml": text})
			spec := specOf(t, someRequest)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := set.Render(spec, noPlan, settings)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("it renders")
			}
			if !strings.HasPrefix(err.Error(), "pod.yaml") || len(err.Error()) > 1<<20 || strings.Count(err.Error(), "executing ") > 4 {
				t.Errorf("the error is %.200v", err)
			}
			if !endsByItself[name] && !place.MatchString(err.Error()) {
				t.Errorf("the error has no line: %.200v", err)
			}
			if !endsByItself[name] && !strings.Contains(err.Error(), "than a render may") && !strings.Contains(err.Error(), "than 4 MiB") && !strings.Contains(err.Error(), "than 64") {
				t.Errorf("it is not a bound that ends it: %.200v", err)
			}
			if took > maxTime {
				t.Errorf("it took %v", took)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > maxAlloc {
				t.Errorf("it took %d MiB", grown>>20)
			}
			t.Logf("%v, %d MiB: %.150v", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, err)
		})
	}
}
