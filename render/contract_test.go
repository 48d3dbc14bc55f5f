package render

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
)

// A row of a table of templates/README.md, and what it stands below.
type row struct {
	heading string
	cells   []string
}

// rows returns the rows of all tables of the contract, without their heads.
func rows(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile("../templates/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []row
	heading, head := "", true
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
		case !strings.HasPrefix(line, "|"):
			head = true
		case strings.HasPrefix(line, "|---"):
			head = false
		case !head:
			line = strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00")
			r := row{heading: heading}
			for cell := range strings.SplitSeq(line, "|") {
				r.cells = append(r.cells, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
			}
			out = append(out, r)
		}
	}
	return out
}

var code = regexp.MustCompile("`([^`]+)`")

// codes returns what stands in backticks in a cell.
func codes(cell string) []string {
	var out []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// parts are the types that a template sees, each with a way to one in the input
// of fullInput.
func parts() map[string]struct {
	kind reflect.Type
	way  string
} {
	return map[string]struct {
		kind reflect.Type
		way  string
	}{
		"Input":         {reflect.TypeFor[Input](), "$"},
		"Flavor":        {reflect.TypeFor[Flavor](), ".Flavor"},
		"Toleration":    {reflect.TypeFor[catalog.Toleration](), "index .Flavor.Tolerations 0"},
		"Container":     {reflect.TypeFor[Container](), "index .Containers 0"},
		"EnvVar":        {reflect.TypeFor[EnvVar](), "index (index .Containers 0).Env 0"},
		"Mount":         {reflect.TypeFor[Mount](), "index (index .Containers 0).Mounts 0"},
		"Resources":     {reflect.TypeFor[Resources](), "(index .Containers 0).Resources"},
		"Volume":        {reflect.TypeFor[Volume](), "index .Volumes 0"},
		"Claim":         {reflect.TypeFor[Claim](), "index .Claims 0"},
		"InlineFiles":   {reflect.TypeFor[InlineFiles](), ".InlineFiles"},
		"InlineFile":    {reflect.TypeFor[InlineFile](), "index .InlineFiles.Files 0"},
		"PullSecret":    {reflect.TypeFor[PullSecret](), "index .PullSecrets 0"},
		"Docker":        {reflect.TypeFor[Docker](), ".Docker"},
		"DNS":           {reflect.TypeFor[DNS](), ".DNS"},
		"NetworkPolicy": {reflect.TypeFor[NetworkPolicy](), ".NetworkPolicy"},
	}
}

// fullInput has one of everything.
func fullInput(t *testing.T) *Input {
	t.Helper()
	spec, err := request.Parse(requesttest.Rich(t))
	if err != nil {
		t.Fatal(err)
	}
	seconds := int64(30)
	plan := &catalog.Plan{Docker: catalog.DockerRootless, RuntimeClass: "gvisor", Flavor: catalog.Flavor{
		Name: "small", Devices: map[string]string{"nvidia.com/gpu": "1"}, NodeSelector: map[string]string{"a": "b"},
		Tolerations:   []catalog.Toleration{{Key: "a", Operator: "Exists", Value: "b", Effect: "NoExecute", Seconds: &seconds}},
		PriorityClass: "high", SupplementalGroups: []int64{44},
	}}
	return NewInput(spec, plan, Settings{
		Namespace: "workloads", FSGroup: 1000, ClaimSize: "1Gi", DockerRootlessImage: "docker", RunAsUser: 1, Restricted: true,
		NetworkPolicy: &NetworkPolicy{EgressCIDRs: []string{"10.0.0.0/8"}},
	})
}

// TestContractHasEveryField compares the tables with the types, both ways, and
// executes the example of each field.
func TestContractHasEveryField(t *testing.T) {
	documented := map[string][]string{}
	in := fullInput(t)
	for _, r := range rows(t) {
		part, isPart := parts()[r.heading]
		if !isPart {
			continue
		}
		field := strings.TrimPrefix(codes(r.cells[0])[0], ".")
		documented[r.heading] = append(documented[r.heading], field)
		if len(r.cells) != 3 || len(codes(r.cells[2])) != 1 {
			t.Errorf("%s.%s has no example", r.heading, field)
			continue
		}
		example := codes(r.cells[2])[0]
		if !strings.Contains(example, "."+field) {
			t.Errorf("the example of %s.%s does not show it: %s", r.heading, field, example)
		}
		if _, err := executed("{{ with "+part.way+" }}"+example+"{{ else }}{{ fail \"empty\" }}{{ end }}", in); err != nil {
			t.Errorf("the example of %s.%s: %v", r.heading, field, err)
		}
	}
	for name, part := range parts() {
		var fields []string
		for i := range part.kind.NumField() {
			fields = append(fields, part.kind.Field(i).Name)
		}
		slices.Sort(fields)
		slices.Sort(documented[name])
		if diff := cmp.Diff(fields, documented[name]); diff != "" {
			t.Errorf("%s (-code +README):\n%s", name, diff)
		}
	}
}

// TestContractHasEveryPart finds a type within Input that no table is about.
func TestContractHasEveryPart(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(of.Elem())
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for i := range of.NumField() {
				visit(of.Field(i).Type)
			}
		}
	}
	visit(reflect.TypeFor[Input]())
	for _, part := range parts() {
		delete(seen, part.kind)
	}
	for missing := range seen {
		t.Errorf("no table is about %s", missing)
	}
}

// executed runs text as a template with data and returns the values that it
// prints.
func executed(text string, data any) ([]any, error) {
	set, err := Compile(map[string]string{"x": text, "_parts": `{{ define "greeting" }}Hello {{ . }}{{ end }}`})
	if err != nil {
		return nil, err
	}
	e := set.executors.Get().(*executor)
	_, err = e.run("x", data)
	return e.slots, err
}

// TestContractHasEveryFunction compares the tables with the functions that a
// template may name, and executes each example: its result as JSON is what is
// documented.
func TestContractHasEveryFunction(t *testing.T) {
	tables := 0
	var documented []string
	for _, r := range rows(t) {
		if r.heading != "Functions" {
			continue
		}
		tables++
		if len(r.cells) != 3 {
			t.Errorf("a row has %d cells: %v", len(r.cells), r.cells)
			continue
		}
		name, example := codes(r.cells[0])[0], codes(r.cells[1])[0]
		documented = append(documented, name)
		if !strings.HasPrefix(example, name+" ") {
			t.Errorf("the example of %s is one of something else: %s", name, example)
		}
		got, err := executed("{{ "+example+" | toJson | print }}", nil)
		if r.cells[2] == "an error" {
			if err == nil {
				t.Errorf("%s gives %s", example, got)
			}
			continue
		}
		if want := codes(r.cells[2])[0]; err != nil || !sameJSON(want, got[len(got)-1].(string)) {
			t.Errorf("%s gives %s (%v), not %s", example, got, err, want)
		}
	}
	functions := slices.Collect(maps.Keys(new(executor).functions(library())))
	functions = append(functions, builtins()...)
	slices.Sort(functions)
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Compact(functions), documented); diff != "" {
		t.Errorf("functions (-code +README):\n%s", diff)
	}
}

// sameJSON compares two JSON texts: < is also \u003c.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// builtins are the functions of text/template, but for call, which has nothing
// to call here.
func builtins() []string {
	return []string{"and", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print", "printf", "println", "slice", "urlquery"}
}

// TestBuiltins: text/template has those, and call, as far as their names can be
// found out.
func TestBuiltins(t *testing.T) {
	for _, name := range append(builtins(), "call") {
		if _, err := template.New("").Parse("{{ " + name + " }}"); err != nil {
			t.Errorf("text/template has no %s", name)
		}
	}
}

func TestContractHasEveryKind(t *testing.T) {
	var documented, known []string
	for _, r := range rows(t) {
		if r.heading == "Templates" {
			documented = append(documented, codes(r.cells[0])[0])
		}
	}
	for _, k := range builtIn() {
		known = append(known, string(k))
	}
	slices.Sort(documented)
	slices.Sort(known)
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("kinds (-code +README):\n%s", diff)
	}
}
