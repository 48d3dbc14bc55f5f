// Package requesttest makes requests for tests.
package requesttest

import (
	_ "embed"
	"testing"

	"github.com/agynio/k8s-runner/request"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

//go:embed rich.yaml
var rich []byte

// Rich returns a valid request in which every field is set.
func Rich(t testing.TB) *runnerv1.StartWorkloadRequest {
	t.Helper()
	return Parse(t, string(rich))
}

// Parse returns the request that text, in YAML, is.
func Parse(t testing.TB, text string) *runnerv1.StartWorkloadRequest {
	t.Helper()
	req, err := request.Unmarshal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return req
}
