//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestLifecycle walks a workload from start to gone.
func TestLifecycle(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	if ready, err := r.Ready(t.Context(), &runnerv1.ReadyRequest{}); err != nil || ready.GetStatus() != "ready" {
		t.Fatalf("Ready: %v, %v", ready, err)
	}
	req := sleeper()
	req.Sidecars = []*runnerv1.ContainerSpec{shell("trap 'exit 0' TERM; sleep 1000 & wait")}
	req.InitContainers = []*runnerv1.ContainerSpec{shell("true")}
	req.Labels = map[string]string{"workload_key": "key-1", "tier": "test"}
	req.Volumes = []*runnerv1.VolumeSpec{{Name: "work", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL}}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "work", MountPath: "/work/", ReadOnly: true}}
	id, pod := req.GetWorkloadId(), "workload-"+req.GetWorkloadId()

	want := &runnerv1.StartWorkloadResponse{
		Id: id,
		Containers: &runnerv1.WorkloadContainers{
			Main:     pod,
			Sidecars: []*runnerv1.SidecarInstance{{Name: "sidecar-1", Id: pod + ":sidecar-1", Status: "starting"}},
		},
		Status: runnerv1.WorkloadStatus_WORKLOAD_STATUS_STARTING,
	}
	if diff := cmp.Diff(want, r.start(t, req), protocmp.Transform()); diff != "" {
		t.Errorf("StartWorkload (-want +got):\n%s", diff)
	}
	// Without a wait: a caller sees what it wrote.
	if got := r.inspect(t, id); got.GetId() != id || got.GetName() != id {
		t.Errorf("Inspect right after the start shows %v", got)
	}

	shown := r.await(t, id, "the workload runs", running)
	checkShown(t, shown)
	if got := r.inspect(t, pod); got.GetId() != id {
		t.Errorf("Inspect by the Pod's name shows %q", got.GetId())
	}
	checkListed(t, r, id)
	if _, err := r.TouchWorkload(t.Context(), &runnerv1.TouchWorkloadRequest{WorkloadId: id}); err != nil {
		t.Fatalf("TouchWorkload: %v", err)
	}
	touched, err := time.Parse(time.RFC3339Nano, r.pod(t, id).Annotations["agyn.io/touched-at"])
	if err != nil || time.Since(touched) > time.Minute {
		t.Errorf("touched at %v, %v", touched, err)
	}
	stopAndSeeGone(t, r, id)
}

func checkShown(t *testing.T, shown *runnerv1.InspectWorkloadResponse) {
	t.Helper()
	if shown.GetConfigImage() != "busybox" || shown.GetImage() != "docker.io/library/busybox:latest" || shown.GetStateStatus() != "running" {
		t.Errorf("asked for %q, runs %q, is %q", shown.GetConfigImage(), shown.GetImage(), shown.GetStateStatus())
	}
	mounts := []*runnerv1.TargetMount{{Type: "emptydir", Source: "work", Destination: "/work", ReadOnly: true}}
	if diff := cmp.Diff(mounts, shown.GetMounts(), protocmp.Transform()); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	var roles []string
	for _, c := range shown.GetContainers() {
		roles = append(roles, fmt.Sprintf("%s %s", c.GetName(), c.GetRole()))
	}
	want := []string{"init-1 CONTAINER_ROLE_INIT", "main CONTAINER_ROLE_MAIN", "sidecar-1 CONTAINER_ROLE_SIDECAR"}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	if init := shown.GetContainers()[0]; init.ExitCode == nil || init.GetExitCode() != 0 || init.GetFinishedAt() == nil {
		t.Errorf("the init container shows %v", init)
	}
}

func checkListed(t *testing.T, r *runner, id string) {
	t.Helper()
	list, err := r.ListWorkloads(t.Context(), &runnerv1.ListWorkloadsRequest{})
	if err != nil {
		t.Fatalf("ListWorkloads: %v", err)
	}
	want := []*runnerv1.WorkloadListItem{{InstanceId: "workload-" + id, WorkloadKey: "key-1"}}
	if diff := cmp.Diff(want, list.GetWorkloads(), protocmp.Transform()); diff != "" {
		t.Errorf("ListWorkloads (-want +got):\n%s", diff)
	}
	labels, err := r.GetWorkloadLabels(t.Context(), &runnerv1.GetWorkloadLabelsRequest{WorkloadId: id})
	if err != nil {
		t.Fatalf("GetWorkloadLabels: %v", err)
	}
	wantLabels := map[string]string{
		"app.kubernetes.io/managed-by": "k8s-runner", "agyn.io/workload-id": id,
		"agyn.dev/managed-by": "agents-orchestrator", "workload_key": "key-1", "tier": "test",
	}
	if diff := cmp.Diff(wantLabels, labels.GetLabels()); diff != "" {
		t.Errorf("GetWorkloadLabels (-want +got):\n%s", diff)
	}
}

func stopAndSeeGone(t *testing.T, r *runner, id string) {
	t.Helper()
	for range 2 { // a workload that is going already is no error
		if _, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: id, TimeoutSec: 20}); err != nil && status.Code(err) != codes.NotFound {
			t.Fatalf("StopWorkload: %v", err)
		}
	}
	eventually(t, 30*time.Second, "the workload is gone", func() error {
		_, err := r.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: id})
		if status.Code(err) != codes.NotFound {
			return fmt.Errorf("Inspect answers %s", status.Code(err))
		}
		return nil
	})
	if left := r.podNames(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestStartAgain: the same request is the same start; another one under the
// same id changes nothing.
func TestStartAgain(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main.Env = []*runnerv1.EnvVar{{Name: "PASSWORD", Value: "s3cr3t-of-the-first"}}
	first := r.start(t, req)
	before := r.pod(t, req.GetWorkloadId())
	if diff := cmp.Diff(first, r.start(t, req), protocmp.Transform()); diff != "" {
		t.Errorf("the answer to a retry differs (-first +second):\n%s", diff)
	}
	if after := r.pod(t, req.GetWorkloadId()); after.UID != before.UID {
		t.Error("a retry made another Pod")
	}

	other := sleeper()
	other.WorkloadId = req.GetWorkloadId()
	other.Main.Env = []*runnerv1.EnvVar{{Name: "PASSWORD", Value: "s3cr3t-of-the-second"}}
	_, err := r.StartWorkload(t.Context(), other)
	wantError(t, err, codes.AlreadyExists, "WORKLOAD_EXISTS")
	after := r.pod(t, req.GetWorkloadId())
	if diff := cmp.Diff(before.Spec.Containers, after.Spec.Containers); diff != "" {
		t.Errorf("a refused start changed the Pod:\n%s", diff)
	}
	if strings.Contains(r.log.String()+err.Error(), "s3cr3t") {
		t.Error("a secret value is in the log or in an error")
	}
}

// TestStartWhileTerminating: an id whose Pod is still going is refused, with a
// time to try again, whatever the request.
func TestStartWhileTerminating(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main = shell("trap '' TERM; while :; do sleep 1; done")
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the workload runs", running)
	for range 2 { // one that is going already is no error
		if _, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: req.GetWorkloadId(), TimeoutSec: 300}); err != nil {
			t.Fatal(err)
		}
	}
	other := sleeper()
	other.WorkloadId = req.GetWorkloadId()
	for _, again := range []*runnerv1.StartWorkloadRequest{req, other} {
		_, err := r.StartWorkload(t.Context(), again)
		wantError(t, err, codes.FailedPrecondition, "WORKLOAD_TERMINATING")
		if retry := detail[*errdetails.RetryInfo](status.Convert(err)); retry.GetRetryDelay().AsDuration() <= 0 {
			t.Errorf("RetryInfo is %v", retry)
		}
	}
	// Force ends it at once, and the id is free as soon as the answer is there.
	if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: req.GetWorkloadId(), Force: true}); err != nil {
		t.Fatal(err)
	}
	_, err := r.InspectWorkload(t.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: req.GetWorkloadId()})
	wantError(t, err, codes.NotFound, "WORKLOAD_NOT_FOUND")
	r.start(t, other)
}

// TestStopGrace: the grace is the caller's, or the Pod's own.
func TestStopGrace(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	for seconds, want := range map[uint32]int64{7: 7, 0: 30} {
		req := sleeper()
		req.Main = shell("trap '' TERM; while :; do sleep 1; done")
		r.start(t, req)
		r.await(t, req.GetWorkloadId(), "the workload runs", running)
		if _, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: req.GetWorkloadId(), TimeoutSec: seconds}); err != nil {
			t.Fatal(err)
		}
		if got := r.pod(t, req.GetWorkloadId()).DeletionGracePeriodSeconds; got == nil || *got != want {
			t.Errorf("timeout_sec %d gives a grace of %v, want %d", seconds, got, want)
		}
	}
}

// TestFind: running ones unless all are asked for; a value that is no label
// value is refused.
func TestFind(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	up, down := sleeper(), sleeper()
	down.Main = shell("exit 0")
	up.Labels = map[string]string{"app": "a", "colour": "red"}
	down.Labels = map[string]string{"app": "a"}
	r.start(t, up)
	r.start(t, down)
	r.await(t, up.GetWorkloadId(), "one runs", running)
	r.await(t, down.GetWorkloadId(), "the other has ended", ended)

	both := []string{up.GetWorkloadId(), down.GetWorkloadId()}
	slices.Sort(both)
	for _, test := range []struct {
		name   string
		labels map[string]string
		all    bool
		want   []string
	}{
		{name: "running", labels: map[string]string{"app": "a"}, want: []string{up.GetWorkloadId()}},
		{name: "all", labels: map[string]string{"app": "a"}, all: true, want: both},
		{name: "two pairs", labels: map[string]string{"app": "a", "colour": "red"}, all: true, want: []string{up.GetWorkloadId()}},
		{name: "another value", labels: map[string]string{"app": "b"}, all: true},
		{name: "no pairs", all: true, want: both},
	} {
		found, err := r.FindWorkloadsByLabels(t.Context(), &runnerv1.FindWorkloadsByLabelsRequest{Labels: test.labels, All: test.all})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, found.GetTargetIds()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	_, err := r.FindWorkloadsByLabels(t.Context(), &runnerv1.FindWorkloadsByLabelsRequest{Labels: map[string]string{"app": "a,b in (c)"}})
	wantError(t, err, codes.InvalidArgument, "INVALID_SELECTOR")
}

// TestUnknown: every call about a workload that is not there is NotFound, also
// where the id can be none.
func TestUnknown(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	ctx := t.Context()
	calls := map[string]func(id string) error{
		"Inspect": func(id string) error {
			_, err := r.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{WorkloadId: id})
			return err
		},
		"GetLabels": func(id string) error {
			_, err := r.GetWorkloadLabels(ctx, &runnerv1.GetWorkloadLabelsRequest{WorkloadId: id})
			return err
		},
		"Stop": func(id string) error {
			_, err := r.StopWorkload(ctx, &runnerv1.StopWorkloadRequest{WorkloadId: id})
			return err
		},
		"Remove": func(id string) error {
			_, err := r.RemoveWorkload(ctx, &runnerv1.RemoveWorkloadRequest{WorkloadId: id})
			return err
		},
		"Touch": func(id string) error {
			_, err := r.TouchWorkload(ctx, &runnerv1.TouchWorkloadRequest{WorkloadId: id})
			return err
		},
	}
	for name, call := range calls {
		for _, id := range []string{uuid.NewString(), "workload-" + uuid.NewString(), "", "workload-", "no uuid", "../x", "UPPER"} {
			t.Run(fmt.Sprintf("%s %q", name, id), func(t *testing.T) {
				wantError(t, call(id), codes.NotFound, "WORKLOAD_NOT_FOUND")
			})
		}
	}
	if left := r.podNames(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestRestart: a runner that starts anew knows everything that it knew.
func TestRestart(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	req := sleeper()
	r.start(t, req)
	before := r.await(t, req.GetWorkloadId(), "the workload runs", running)
	r.stop(t)
	after := startRunner(t, ns).inspect(t, req.GetWorkloadId())
	if diff := cmp.Diff(before, after, protocmp.Transform()); diff != "" {
		t.Errorf("a restarted runner shows something else:\n%s", diff)
	}
}
