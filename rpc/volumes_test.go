package rpc

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

func TestListVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string]string
		want   *runnerv1.ListVolumesResponse
	}{
		"none": {nil, &runnerv1.ListVolumesResponse{}},
		"sorted": {map[string]string{"b": "k1", "c": "", "a": "k2"}, &runnerv1.ListVolumesResponse{Volumes: []*runnerv1.VolumeListItem{
			{InstanceId: "a", VolumeKey: "k2"}, {InstanceId: "b", VolumeKey: "k1"}, {InstanceId: "c"},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, _ := serve(t, &fake{claims: c.claims})
			got, err := client.ListVolumes(context.Background(), &runnerv1.ListVolumesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestListWorkloadsByVolume(t *testing.T) {
	state := func(key string, phase workload.Phase, terminating bool, claims ...string) *workload.State {
		return &workload.State{ID: key, PodName: "workload-" + key, Phase: phase, Terminating: terminating, Claims: claims}
	}
	client, _, _ := serve(t, &fake{states: map[string]*workload.State{
		"c": state("c", workload.PhaseRunning, false, "data", "other"),
		"a": state("a", "Failed", false, "data"),
		"b": state("b", "Pending", true, "data"),
		"d": state("d", workload.PhaseRunning, false, "data-2"),
		"e": state("e", workload.PhaseRunning, false),
	}})
	for volume, want := range map[string][]string{"data": {"a", "b", "c"}, "other": {"c"}, "dat": nil, "no name": nil} {
		got, err := client.ListWorkloadsByVolume(context.Background(), &runnerv1.ListWorkloadsByVolumeRequest{VolumeName: volume})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.GetTargetIds()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", volume, diff)
		}
	}
	_, err := client.ListWorkloadsByVolume(context.Background(), &runnerv1.ListWorkloadsByVolumeRequest{})
	wantNameRequired(t, err)
}

func wantNameRequired(t *testing.T, err error) {
	t.Helper()
	want := answer{Code: codes.InvalidArgument, Token: "volume_name_required", Reason: "VOLUME_NAME_REQUIRED", Domain: "k8s-runner",
		Fields: []string{"volume_name VOLUME_NAME_REQUIRED name the claim"}}
	if diff := cmp.Diff(want, answerOf(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRemoveVolume(t *testing.T) {
	for name, c := range map[string]struct {
		request *runnerv1.RemoveVolumeRequest
		want    []deletion
	}{
		"gracefully": {&runnerv1.RemoveVolumeRequest{VolumeName: "data"}, []deletion{{"data", "", nil, "until it is going"}}},
		"by force":   {&runnerv1.RemoveVolumeRequest{VolumeName: "data", Force: true}, []deletion{{"data", "", ptr(int64(0)), "until it is going"}}},
		"absent":     {&runnerv1.RemoveVolumeRequest{VolumeName: "absent"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			client, _, _ := serve(t, f)
			if _, err := client.RemoveVolume(context.Background(), c.request); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, f.deleted); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	client, _, _ := serve(t, &fake{err: workload.Errorf(workload.FailedPrecondition, "claim_not_ours", "x")})
	_, err := client.RemoveVolume(context.Background(), &runnerv1.RemoveVolumeRequest{})
	wantNameRequired(t, err)
	_, err = client.RemoveVolume(context.Background(), &runnerv1.RemoveVolumeRequest{VolumeName: "data"})
	if a := answerOf(t, err); a.Code != codes.FailedPrecondition || a.Reason != "CLAIM_NOT_OURS" {
		t.Errorf("%+v", a)
	}
}
