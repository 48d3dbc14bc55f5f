package request_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/workload"
)

// parse parses text, which must be a valid request.
func parse(t *testing.T, text string) *workload.Spec {
	t.Helper()
	spec, err := request.Parse(requesttest.Parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// faults returns the violations of req as "token field", sorted.
func faults(t *testing.T, req *runnerv1.StartWorkloadRequest) []string {
	t.Helper()
	spec, err := request.Parse(req)
	if err == nil {
		return nil
	}
	if spec != nil {
		t.Error("Parse returned both a Spec and an error")
	}
	var e *workload.Error
	if !errors.As(err, &e) || e.Kind != workload.InvalidArgument {
		t.Fatalf("Parse returned %v, which is not an InvalidArgument", err)
	}
	var found []string
	for _, v := range e.Violations {
		if v.Message == "" {
			t.Errorf("the violation %s of %s says nothing", v.Token, v.Field)
		}
		found = append(found, v.Token+" "+v.Field)
	}
	if len(found) == 0 || !strings.HasPrefix(found[0], e.Token+" ") {
		t.Errorf("the error's token is %q, its violations are %q", e.Token, found)
	}
	slices.Sort(found)
	return found
}

// wantFaults compares the violations of the request text with want.
func wantFaults(t *testing.T, text string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, faults(t, requesttest.Parse(t, text))); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func cloned[M proto.Message](m M) M { return proto.Clone(m).(M) }
