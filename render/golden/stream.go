package golden

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Stream is manifests as a stream of YAML documents, keys sorted.
func Stream(manifests []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for i, m := range manifests {
		if i > 0 {
			out.WriteString("---\n")
		}
		doc, err := document(m.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", m.GetKind(), m.GetName(), err)
		}
		out.Write(doc)
	}
	return out.Bytes(), nil
}

// document is obj as YAML or, where YAML does not bring it back unchanged, as
// JSON, which is YAML as well. U+0085 is such a case: a line break that the
// writer does not escape.
func document(obj any) ([]byte, error) {
	asJSON, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	doc, err := yaml.JSONToYAML(asJSON)
	if err != nil {
		return nil, err
	}
	if back, err := yaml.YAMLToJSON(doc); err == nil && bytes.Equal(back, asJSON) {
		return doc, nil
	}
	doc, err = json.MarshalIndent(obj, "", "  ")
	return append(bytes.ReplaceAll(doc, []byte("\u0085"), []byte(`\u0085`)), '\n'), err
}
