package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"

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
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	if err := oneDocument(data); err != nil {
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	req := &runnerv1.StartWorkloadRequest{}
	if err := protojson.Unmarshal(asJSON, req); err != nil {
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	return req, nil
}

// oneDocument refuses what YAMLToJSONStrict would leave out without a word.
func oneDocument(data []byte) error {
	documents := yamlnode.NewDecoder(bytes.NewReader(data))
	var first, second yamlnode.Node
	if err := documents.Decode(&first); err != nil {
		return err
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return errors.New("the file holds more than one document")
	}
	return nil
}
