package charts

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	k8srunner "github.com/agynio/k8s-runner"
	"github.com/agynio/k8s-runner/config"
)

// object is a part of a YAML or JSON document.
type object = map[string]any

func readObject(t *testing.T, name string) (out object) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(chart, name))), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCatalogIsTheShippedOne: the values' catalog is what the runner has without one.
func TestCatalogIsTheShippedOne(t *testing.T) {
	var shipped object
	if err := yaml.Unmarshal(k8srunner.Catalog, &shipped); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shipped, readObject(t, "values.yaml")["catalog"]); diff != "" {
		t.Errorf("the catalog differs (-shipped +values.yaml):\n%s", diff)
	}
}

// TestSchemaKnowsEverySetting: the schema's config has the settings of the runner, and no
// others. Those that the chart sets, it refuses with a sentence.
func TestSchemaKnowsEverySetting(t *testing.T) {
	c := config.Default()
	c.Kube.Namespace = "x"
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var settings object
	if err := yaml.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	schema := dig(t, readObject(t, "values.schema.json"), "properties", "config", "properties")
	// The chart's own, in groups of which a part is the operator's.
	chartsOwn := []string{"kube.namespace", "kube.kubeconfig", "ziti.enabled", "ziti.identity_file"}
	for group, keys := range settings {
		known, ok := schema[group].(object)
		if !ok {
			t.Errorf("the schema has no config.%s", group)
			continue
		}
		if _, refused := known["const"]; refused {
			continue
		}
		for key := range keys.(object) {
			if _, ok := dig(t, known, "properties")[key]; !ok && !slices.Contains(chartsOwn, group+"."+key) {
				t.Errorf("the schema has no config.%s.%s", group, key)
			}
		}
		for key := range dig(t, known, "properties") {
			if _, ok := keys.(object)[key]; !ok {
				t.Errorf("the schema's config.%s.%s is no setting", group, key)
			}
		}
	}
	for group := range schema {
		if _, ok := settings[group]; !ok {
			t.Errorf("the schema's config.%s is no setting", group)
		}
	}
}

func dig(t *testing.T, from object, path ...string) object {
	t.Helper()
	for _, key := range path {
		next, ok := from[key].(object)
		if !ok {
			t.Fatalf("there is no %s of %v", key, path)
		}
		from = next
	}
	return from
}

// TestValuesAreDescribed: each value of values.yaml that is not data has a comment above
// it, or above one of those that it is among.
func TestValuesAreDescribed(t *testing.T) {
	key := regexp.MustCompile(`^( *)([A-Za-z][A-Za-z0-9]*):`)
	described, comment := map[int]bool{}, false
	for number, line := range strings.Split(read(t, filepath.Join(chart, "values.yaml")), "\n") {
		switch match := key.FindStringSubmatch(line); {
		case strings.HasPrefix(strings.TrimSpace(line), "# "):
			comment = true
			continue
		case match != nil:
			depth := len(match[1]) / 2
			described[depth] = comment || depth > 0 && described[depth-1]
			if !described[depth] {
				t.Errorf("values.yaml:%d: %s is not described", number+1, match[2])
			}
		}
		if strings.TrimSpace(line) == "" {
			comment = false
		}
	}
}

// TestSchemaKnowsEveryValue: each value is in the schema, which lets no other through.
func TestSchemaKnowsEveryValue(t *testing.T) {
	schema := readObject(t, "values.schema.json")
	var walk func(path string, values, schema object)
	walk = func(path string, values, schema object) {
		properties, isClosed := schema["properties"].(object)
		if !isClosed {
			return
		}
		if schema["additionalProperties"] != false {
			text, _ := json.Marshal(schema)
			t.Errorf("the schema lets anything through at %s: %.80s", path, text)
		}
		for key, value := range values {
			known, ok := properties[key].(object)
			if !ok {
				t.Errorf("the schema has no %s.%s", path, key)
				continue
			}
			if inner, ok := value.(object); ok {
				walk(path+"."+key, inner, known)
			}
		}
	}
	walk("values", readObject(t, "values.yaml"), schema)
}
