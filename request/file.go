package request

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// Unmarshal reads a StartWorkloadRequest from YAML whose fields are named as
// in the .proto file or as protojson names them. Unknown fields, duplicate keys
// and a second document are errors.
func Unmarshal(data []byte) (*runnerv1.StartWorkloadRequest, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, errors.New(yamlProblem(err))
	}
	if err := oneDocument(data); err != nil {
		return nil, err
	}
	req := &runnerv1.StartWorkloadRequest{}
	if err := protojson.Unmarshal(asJSON, req); err != nil {
		return nil, errors.New(fieldProblem(err))
	}
	return req, nil
}

// oneDocument refuses what YAMLToJSONStrict would leave out without a word.
func oneDocument(data []byte) error {
	documents := yamlnode.NewDecoder(bytes.NewReader(data))
	var first, second yamlnode.Node
	if err := documents.Decode(&first); err != nil {
		return errors.New(yamlProblem(err))
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return errors.New("the file holds more than one document")
	}
	return nil
}

// yamlProblem keeps of the YAML library's words the place: they quote text of
// the file, which may be secret.
func yamlProblem(err error) string {
	if line := regexp.MustCompile(`line [0-9]+`).FindString(err.Error()); line != "" {
		return line + ": not YAML, or a key that is there twice"
	}
	return "not YAML, or a key that is there twice"
}

// fieldProblem says what is wrong with a field without the values that
// protojson quotes, and without its position, which is one in converted text.
func fieldProblem(err error) string {
	_, problem, _ := strings.Cut(err.Error(), "): ")
	if kind, wrong := strings.CutPrefix(problem, "invalid value for "); wrong {
		kind, _, _ = strings.Cut(kind, ":")
		return "invalid value for " + kind + "; text that YAML takes for a number or a boolean needs quotes"
	}
	if strings.HasPrefix(problem, "unknown field ") {
		return problem
	}
	return "a text, a list or a mapping stands where one of the others is due"
}
