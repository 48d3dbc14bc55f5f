package request_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLabelSources(t *testing.T) {
	spec := parse(t, `{main: {image: a}, labels: {both: x, mine: "1"}, additional_properties: {label.both: x, label.theirs: "2", label.example.com/team: "007", labels.no: x, colour: blue}}`)
	want := map[string]string{"both": "x", "mine": "1", "theirs": "2", "example.com/team": "007"}
	if diff := cmp.Diff(want, spec.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if spec.Properties["label.theirs"] != "2" || spec.Properties["colour"] != "blue" {
		t.Error("the properties are not all visible")
	}
}

// TestLabels has the lengths and ends of case C02 and the reserved keys.
func TestLabels(t *testing.T) {
	const id = "00000000-0000-4000-8000-00000000000a"
	for name, c := range map[string]struct {
		key, value string
		token      string
	}{
		"63 characters":            {"k", strings.Repeat("a", 63), ""},
		"64 characters":            {"k", strings.Repeat("a", 64), "invalid_label"},
		"a dash at the end":        {"k", "a-", "invalid_label"},
		"a dash at the start":      {"k", "-a", "invalid_label"},
		"empty":                    {"k", "", ""},
		"a space":                  {"k", "a b", "invalid_label"},
		"a newline":                {"k", "a\n", "invalid_label"},
		"non-ASCII":                {"k", "é", "invalid_label"},
		"key of 63":                {strings.Repeat("k", 63), "v", ""},
		"key of 64":                {strings.Repeat("k", 64), "v", "invalid_label"},
		"key with a domain":        {"example.com/k", "v", ""},
		"key with two slashes":     {"a/b/c", "v", "invalid_label"},
		"empty key":                {"", "v", "invalid_label"},
		"key with a space":         {"a b", "v", "invalid_label"},
		"manager, other value":     {"app.kubernetes.io/managed-by", "me", "reserved_label"},
		"manager, the value":       {"app.kubernetes.io/managed-by", "k8s-runner", ""},
		"fence, other value":       {"agyn.dev/managed-by", "", "reserved_label"},
		"fence, the value":         {"agyn.dev/managed-by", "agents-orchestrator", ""},
		"id, other value":          {"agyn.io/workload-id", "x", "reserved_label"},
		"id, the value":            {"agyn.io/workload-id", id, ""},
		"a key near a reserved":    {"agyn.io/workload", "x", ""},
		"workload_key is callers'": {"workload_key", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for source, field := range map[string]string{
				"labels":                "labels[" + c.key + "]",
				"additional_properties": "additional_properties[label." + c.key + "]",
			} {
				req := minimal(id)
				switch source {
				case "labels":
					req.Labels = map[string]string{c.key: c.value}
				default:
					req.AdditionalProperties = map[string]string{"label." + c.key: c.value}
				}
				var want []string
				if c.token != "" {
					want = []string{c.token + " " + field}
				}
				if diff := cmp.Diff(want, faults(t, req)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", source, diff)
				}
			}
		})
	}
}

func TestConflictingLabels(t *testing.T) {
	text := `{main: {image: a}, labels: {a: "1", b: "2", c: "3"}, additional_properties: {label.a: x, label.b: x, label.c: x}}`
	wantFaults(t, text,
		"conflicting_label additional_properties[label.a]",
		"conflicting_label additional_properties[label.b]",
		"conflicting_label additional_properties[label.c]")
	first := parseError(t, text).Error()
	for range 20 {
		if again := parseError(t, text).Error(); again != first {
			t.Fatalf("the same request has two errors:\n%s\n%s", first, again)
		}
	}
}
