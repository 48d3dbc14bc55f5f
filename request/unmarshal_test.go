package request_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
)

func TestUnmarshalRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"unknown field":             `main: {image: a, imagee: b}`,
		"unknown field at the top":  `kind: Pod`,
		"duplicate key":             "main: {image: a}\nmain: {image: b}",
		"duplicate nested key":      `main: {image: a, image: b}`,
		"duplicate in a map":        `labels: {a: x, a: y}`,
		"one field by two names":    `{workload_id: a, workloadId: b}`,
		"number for a string":       `main: {image: 1}`,
		"boolean for a label":       `labels: {a: yes}`,
		"string for a boolean":      `main: {mounts: [{read_only: "true"}]}`,
		"scalar for a list":         `main: {cmd: run}`,
		"list for a message":        `main: [a]`,
		"unknown enum name":         `volumes: [{kind: VOLUME_KIND_ETERNAL}]`,
		"bytes that are not base64": `inline_files: {/a: "*"}`,
		"not YAML":                  `main: {`,
		"not a mapping":             `- a`,
		"nothing":                   "# nothing\n",
		"a second document":         "main: {image: a}\n---\nmain: {image: b}",
	} {
		t.Run(name, func(t *testing.T) {
			if req, err := request.Unmarshal([]byte(text)); err == nil {
				t.Errorf("it is read as %v", req)
			}
		})
	}
}

func TestUnmarshalNames(t *testing.T) {
	want := requesttest.Parse(t, `{workload_id: a, init_containers: [{image: b}], volumes: [{kind: VOLUME_KIND_NAMED}]}`)
	got := requesttest.Parse(t, `{workloadId: a, initContainers: [{image: b}], volumes: [{kind: 2}]}`)
	if !proto.Equal(want, got) {
		t.Errorf("by the names of protojson it is %v, by those of the .proto file %v", got, want)
	}
}
