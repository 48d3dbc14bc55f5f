package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

func ptr[T any](v T) *T { return &v }

func TestInspect(t *testing.T) {
	started, finished := time.Unix(1, 0).UTC(), time.Unix(2, 0).UTC()
	state := &workload.State{
		ID: id, PodName: "workload-" + id, Labels: map[string]string{"a": "b"}, Phase: workload.PhaseRunning,
		Containers: []workload.ContainerState{
			{Name: "init", Role: workload.RoleInit, ConfigImage: "i", Image: "i@1", Status: workload.Terminated, Reason: "Completed", ExitCode: ptr(int32(0)), StartedAt: started, FinishedAt: finished},
			{Name: "main", Role: workload.RoleMain, ConfigImage: "m", Image: "m@1", RuntimeID: "containerd://1", Status: workload.Running, StartedAt: started, Restarts: 2},
			{Name: "side", Role: workload.RoleSidecar, ConfigImage: "s", Image: "s", Status: workload.Waiting, Reason: "ErrImagePull", Message: "no such image"},
		},
		Mounts: []workload.MountState{{Volume: "w", Path: "/w"}, {Claim: "c", Volume: "d", Path: "/d", ReadOnly: true}},
	}
	want := &runnerv1.InspectWorkloadResponse{
		Id: id, Name: id, Image: "m@1", ConfigImage: "m", ConfigLabels: map[string]string{"a": "b"}, StateStatus: "running", StateRunning: true,
		Mounts: []*runnerv1.TargetMount{
			{Type: "emptydir", Source: "w", Destination: "/w"},
			{Type: "pvc", Source: "c", Destination: "/d", ReadOnly: true},
		},
		Containers: []*runnerv1.WorkloadContainer{
			{Name: "init", Role: runnerv1.ContainerRole_CONTAINER_ROLE_INIT, Image: "i@1", Status: runnerv1.ContainerStatus_CONTAINER_STATUS_TERMINATED, Reason: ptr("Completed"), ExitCode: ptr(int32(0)), StartedAt: timestamppb.New(started), FinishedAt: timestamppb.New(finished)},
			{Name: "main", ContainerId: "containerd://1", Role: runnerv1.ContainerRole_CONTAINER_ROLE_MAIN, Image: "m@1", Status: runnerv1.ContainerStatus_CONTAINER_STATUS_RUNNING, StartedAt: timestamppb.New(started), RestartCount: 2},
			{Name: "side", Role: runnerv1.ContainerRole_CONTAINER_ROLE_SIDECAR, Image: "s", Status: runnerv1.ContainerStatus_CONTAINER_STATUS_WAITING, Reason: ptr("ErrImagePull"), Message: ptr("no such image")},
		},
	}
	client, _, _ := serve(t, &fake{states: map[string]*workload.State{id: state}})
	for _, ref := range []string{id, "workload-" + id} {
		got, err := client.InspectWorkload(context.Background(), &runnerv1.InspectWorkloadRequest{WorkloadId: ref})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ref, diff)
		}
	}
}

// TestInspectShowsThePodsReason at the main container, where callers look
// (C28, C38), unless it has its own.
func TestInspectShowsThePodsReason(t *testing.T) {
	for name, c := range map[string]struct {
		pod, main string
		want      *string
	}{
		"the Pod's":     {"Evicted", "", ptr("Evicted")},
		"its own":       {"Evicted", "Error", ptr("Error")},
		"there is none": {"", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			state := &workload.State{ID: id, Phase: "Failed", Reason: c.pod, Message: "of the Pod", Containers: []workload.ContainerState{
				{Name: "init", Role: workload.RoleInit, Status: workload.Waiting},
				{Name: "main", Role: workload.RoleMain, Status: workload.Waiting, Reason: c.main},
			}}
			client, _, _ := serve(t, &fake{states: map[string]*workload.State{id: state}})
			got, err := client.InspectWorkload(context.Background(), &runnerv1.InspectWorkloadRequest{WorkloadId: id})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.GetContainers()[1].Reason); diff != "" || got.GetContainers()[0].Reason != nil {
				t.Errorf("main has %v, init %v", got.GetContainers()[1].Reason, got.GetContainers()[0].Reason)
			}
			if got.GetStateStatus() != "failed" || got.GetStateRunning() {
				t.Errorf("the state is %q, running %v", got.GetStateStatus(), got.GetStateRunning())
			}
		})
	}
}

// some is a cluster of four workloads.
func some() *fake {
	state := func(key string, phase workload.Phase, labels map[string]string) *workload.State {
		return &workload.State{ID: key, PodName: "workload-" + key, Phase: phase, Labels: labels}
	}
	return &fake{states: map[string]*workload.State{
		"c": state("c", workload.PhaseRunning, map[string]string{"workload_key": "k3", "team": "x"}),
		"a": state("a", "Pending", map[string]string{"workload_key": "k1", "team": "x"}),
		"b": state("b", workload.PhaseRunning, map[string]string{"team": "x", "tier": "1"}),
		"d": state("d", "Succeeded", map[string]string{"workload_key": ""}),
	}}
}

func TestListWorkloads(t *testing.T) {
	client, _, _ := serve(t, some())
	got, err := client.ListWorkloads(context.Background(), &runnerv1.ListWorkloadsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &runnerv1.ListWorkloadsResponse{Workloads: []*runnerv1.WorkloadListItem{
		{InstanceId: "workload-a", WorkloadKey: "k1"}, {InstanceId: "workload-c", WorkloadKey: "k3"}, {InstanceId: "workload-d"},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindWorkloadsByLabels(t *testing.T) {
	client, _, _ := serve(t, some())
	for name, c := range map[string]struct {
		labels map[string]string
		all    bool
		want   []string
	}{
		"running":      {map[string]string{"team": "x"}, false, []string{"b", "c"}},
		"all":          {map[string]string{"team": "x"}, true, []string{"a", "b", "c"}},
		"all must fit": {map[string]string{"team": "x", "tier": "1"}, true, []string{"b"}},
		"none":         {map[string]string{"team": "y"}, true, nil},
		"no label":     {nil, true, []string{"a", "b", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := client.FindWorkloadsByLabels(context.Background(), &runnerv1.FindWorkloadsByLabelsRequest{Labels: c.labels, All: c.all})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.GetTargetIds()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindRefusesWhatIsNoLabel(t *testing.T) {
	client, _, _ := serve(t, some())
	_, err := client.FindWorkloadsByLabels(context.Background(), &runnerv1.FindWorkloadsByLabelsRequest{
		Labels: map[string]string{"b": "not a value", "a key": "x", "c": "fine", "a": "*", "d": "in (x)"},
	})
	got := answerOf(t, err)
	if got.Code != codes.InvalidArgument || got.Reason != "INVALID_SELECTOR" || len(got.Fields) != 4 {
		t.Errorf("%+v", got)
	}
}
