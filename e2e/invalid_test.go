//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestInvalid: wrong input is refused with its field named, and nothing is
// left behind.
func TestInvalid(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	const ephemeral = runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL
	mount := func(volume, path string) *runnerv1.VolumeMount {
		return &runnerv1.VolumeMount{Volume: volume, MountPath: path}
	}
	for _, test := range []struct {
		name   string
		change func(*runnerv1.StartWorkloadRequest)
		field  string
		reason string
	}{
		{"no main", func(q *runnerv1.StartWorkloadRequest) { q.Main = nil }, "main", "MAIN_CONTAINER_REQUIRED"},
		{"no image", func(q *runnerv1.StartWorkloadRequest) { q.Main.Image = "" }, "main.image", "MAIN_CONTAINER_IMAGE_REQUIRED"},
		{"bad image", func(q *runnerv1.StartWorkloadRequest) { q.Main.Image = "https://reg/a" }, "main.image", "INVALID_IMAGE"},
		{"bad name", func(q *runnerv1.StartWorkloadRequest) {
			q.Sidecars = []*runnerv1.ContainerSpec{{Name: "my_sidecar", Image: "busybox"}}
		}, "sidecars[0].name", "INVALID_CONTAINER_NAME"},
		{"duplicate name", func(q *runnerv1.StartWorkloadRequest) {
			q.InitContainers = []*runnerv1.ContainerSpec{{Name: "main", Image: "busybox"}}
		}, "init_containers[0].name", "DUPLICATE_CONTAINER_NAME"},
		{"undeclared volume", func(q *runnerv1.StartWorkloadRequest) {
			q.Main.Mounts = []*runnerv1.VolumeMount{mount("nowhere", "/w")}
		}, "main.mounts[0].volume", "UNDECLARED_VOLUME"},
		{"duplicate mount path", func(q *runnerv1.StartWorkloadRequest) {
			q.Volumes = []*runnerv1.VolumeSpec{{Name: "w", Kind: ephemeral}}
			q.Main.Mounts = []*runnerv1.VolumeMount{mount("w", "/w"), mount("w", "/w/")}
		}, "main.mounts[1].mount_path", "DUPLICATE_MOUNT_PATH"},
		{"duplicate volume", func(q *runnerv1.StartWorkloadRequest) {
			q.Volumes = []*runnerv1.VolumeSpec{{Name: "w", Kind: ephemeral}, {Name: "w", Kind: ephemeral}}
		}, "volumes[1].name", "DUPLICATE_VOLUME_NAME"},
		{"bad env name", func(q *runnerv1.StartWorkloadRequest) {
			q.Main.Env = []*runnerv1.EnvVar{{Name: "A=B"}}
		}, "main.env[0].name", "INVALID_ENV_NAME"},
		{"bad label", func(q *runnerv1.StartWorkloadRequest) {
			q.Labels = map[string]string{"long": strings.Repeat("a", 64)}
		}, "labels[long]", "INVALID_LABEL"},
		{"reserved label", func(q *runnerv1.StartWorkloadRequest) {
			q.AdditionalProperties = map[string]string{"label.agyn.dev/managed-by": "me"}
		}, "additional_properties[label.agyn.dev/managed-by]", "RESERVED_LABEL"},
		{"bad workload id", func(q *runnerv1.StartWorkloadRequest) { q.WorkloadId = "no-uuid" }, "workload_id", "INVALID_WORKLOAD_ID"},
		{"entrypoint with white space", func(q *runnerv1.StartWorkloadRequest) { q.Main.Entrypoint = "/bin/sh -c" }, "main.entrypoint", "INVALID_ENTRYPOINT"},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := sleeper()
			test.change(req)
			_, err := r.StartWorkload(t.Context(), req)
			wantError(t, err, codes.InvalidArgument, test.reason)
			if token := strings.ToLower(test.reason) + ": "; !strings.HasPrefix(status.Convert(err).Message(), token) {
				t.Errorf("the message %q does not start with %q", status.Convert(err).Message(), token)
			}
			violations := detail[*errdetails.BadRequest](status.Convert(err)).GetFieldViolations()
			if !slices.ContainsFunc(violations, func(v *errdetails.BadRequest_FieldViolation) bool { return v.GetField() == test.field }) {
				t.Errorf("BadRequest does not name %s: %v", test.field, violations)
			}
		})
	}
	if left := r.podNames(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if writes := r.requests(t)["create pods"]; writes > 0 {
		t.Errorf("%d writes reached the API server", writes)
	}
}
