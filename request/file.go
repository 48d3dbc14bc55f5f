package request

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// Unmarshal reads a StartWorkloadRequest from YAML whose fields are named as
// in the .proto file or as protojson names them. Unknown fields and duplicate
// keys are errors.
func Unmarshal(data []byte) (*runnerv1.StartWorkloadRequest, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	req := &runnerv1.StartWorkloadRequest{}
	if err := protojson.Unmarshal(asJSON, req); err != nil {
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	return req, nil
}
