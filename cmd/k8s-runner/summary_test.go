package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"
	"sigs.k8s.io/yaml"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// inspected reads an answer in YAML in which the enums' prefixes are left out.
func inspected(t *testing.T, text string) *runnerv1.InspectWorkloadResponse {
	t.Helper()
	for _, role := range []string{"MAIN", "SIDECAR", "INIT"} {
		text = strings.ReplaceAll(text, "role: "+role, "role: CONTAINER_ROLE_"+role)
	}
	for _, state := range []string{"RUNNING", "WAITING", "TERMINATED"} {
		text = strings.ReplaceAll(text, "status: "+state, "status: CONTAINER_STATUS_"+state)
	}
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &runnerv1.InspectWorkloadResponse{}
	if err := protojson.Unmarshal(asJSON, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSummary checks what ps tells of a workload and what wait makes of it.
func TestSummary(t *testing.T) {
	tests := []struct {
		name, workload       string
		status, ready, stage string
		fails                bool
	}{
		{
			name:     "not scheduled",
			workload: `{state_status: pending, containers: [{name: main, role: MAIN, status: WAITING, reason: Unschedulable, message: no node}]}`,
			status:   "Unschedulable", ready: "0/1", stage: "STARTING  main: Unschedulable (no node)",
		},
		{
			name:     "nothing known",
			workload: `{containers: []}`,
			status:   "Unknown", ready: "0/0", stage: "STARTING  ",
		},
		{
			name: "an init container waits",
			workload: `{state_status: pending, containers: [
				{name: init-1, role: INIT, status: WAITING, reason: ImagePullBackOff},
				{name: main, role: MAIN, status: WAITING, reason: PodInitializing}]}`,
			status: "Init:ImagePullBackOff", ready: "0/1", stage: "STARTING  init-1: ImagePullBackOff, main: PodInitializing",
		},
		{
			name: "main waits for a sidecar's image",
			workload: `{state_status: pending, containers: [
				{name: main, role: MAIN, status: RUNNING},
				{name: proxy, role: SIDECAR, status: WAITING, reason: ErrImagePull}]}`,
			status: "Sidecar:ErrImagePull", ready: "1/2", stage: "STARTING  proxy: ErrImagePull",
		},
		{
			name: "running",
			workload: `{state_status: running, state_running: true, containers: [
				{name: init-1, role: INIT, status: TERMINATED, reason: Completed, exit_code: 0},
				{name: main, role: MAIN, status: RUNNING}, {name: sidecar-1, role: SIDECAR, status: RUNNING}]}`,
			status: "Running", ready: "2/2", stage: "RUNNING",
		},
		{
			name: "main failed, a sidecar runs on",
			workload: `{state_status: running, state_running: true, containers: [
				{name: main, role: MAIN, status: TERMINATED, reason: OOMKilled, exit_code: 137},
				{name: sidecar-1, role: SIDECAR, status: RUNNING}]}`,
			status: "OOMKilled (137)", ready: "1/2", stage: "ENDED     OOMKilled (137)", fails: true,
		},
		{
			name: "main is done, a sidecar runs on",
			workload: `{state_status: running, state_running: true, containers: [
				{name: main, role: MAIN, status: TERMINATED, reason: Completed, exit_code: 0},
				{name: sidecar-1, role: SIDECAR, status: RUNNING}]}`,
			status: "Completed", ready: "1/2", stage: "ENDED     Completed",
		},
		{
			name:     "done",
			workload: `{state_status: succeeded, containers: [{name: main, role: MAIN, status: TERMINATED, exit_code: 0}]}`,
			status:   "Completed", ready: "0/1", stage: "ENDED     Completed",
		},
		{
			name: "a sidecar failed",
			workload: `{state_status: failed, containers: [
				{name: main, role: MAIN, status: TERMINATED, reason: Completed, exit_code: 0},
				{name: sidecar-1, role: SIDECAR, status: TERMINATED, exit_code: 2}]}`,
			status: "Sidecar:Error (2)", ready: "0/2", stage: "ENDED     Sidecar:Error (2)", fails: true,
		},
		{
			name: "an init container failed",
			workload: `{state_status: failed, containers: [
				{name: init-1, role: INIT, status: TERMINATED, reason: Error, exit_code: 1},
				{name: main, role: MAIN, status: WAITING, reason: PodInitializing}]}`,
			status: "Init:Error (1)", ready: "0/1", stage: "ENDED     Init:Error (1)", fails: true,
		},
		{
			name:     "evicted",
			workload: `{state_status: failed, containers: [{name: main, role: MAIN, status: WAITING, reason: Evicted}]}`,
			status:   "Evicted", ready: "0/1", stage: "ENDED     Evicted", fails: true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := summary{inspected(t, test.workload)}
			line, done := stage(s)
			got := []string{s.status(), s.ready(), line, fmt.Sprint(done && outcome(s) != nil)}
			if diff := cmp.Diff([]string{test.status, test.ready, test.stage, fmt.Sprint(test.fails)}, got); diff != "" {
				t.Errorf("status, ready, stage, failure differ (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := inspected(t, `
id: 00000000-0000-4000-8000-000000000001
config_image: busybox
image: docker.io/library/busybox:latest
config_labels: {agyn.io/workload-id: 00000000-0000-4000-8000-000000000001, team: blue, a: ""}
state_status: running
state_running: true
mounts:
  - {type: emptydir, source: work, destination: /work}
  - {type: pvc, source: data, destination: /data, read_only: true}
containers:
  - {name: init-1, role: INIT, image: busybox, status: TERMINATED, reason: Completed, exit_code: 0, restart_count: 1}
  - {name: main, role: MAIN, image: busybox, status: RUNNING}
  - {name: proxy, role: SIDECAR, image: "proxy:1", status: RUNNING, restart_count: 2}`)
	w.Containers[1].StartedAt = timestamppb.New(now.Add(-90 * time.Minute))

	workloads := []*runnerv1.InspectWorkloadResponse{w}
	got := strings.Join([]string{psTable(workloads, false, now), psTable(workloads, true, now), describe(w, now)}, "\n")
	want := `ID                                     IMAGE     STATUS    READY   RESTARTS   AGE
00000000-0000-4000-8000-000000000001   busybox   Running   2/2     3          90m

ID                                     IMAGE     STATUS    READY   RESTARTS   AGE   LABELS
00000000-0000-4000-8000-000000000001   busybox   Running   2/2     3          90m   a=,team=blue

ID:       00000000-0000-4000-8000-000000000001
Image:    busybox
Status:   Running
Labels:   a=,team=blue
Mount:    emptydir work at /work
Mount:    pvc data at /data (read-only)

CONTAINER   ROLE      STATUS       REASON      EXIT   RESTARTS   AGE   IMAGE
init-1      init      terminated   Completed   0      1          -     busybox
main        main      running      -           -      0          90m   busybox
proxy       sidecar   running      -           -      2          -     proxy:1
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tables differ (-want +got)\n%s", diff)
	}
}

// TestPsOrder checks that what has not started comes first, then the youngest.
func TestPsOrder(t *testing.T) {
	at := func(id string, seconds int64) *runnerv1.InspectWorkloadResponse {
		main := &runnerv1.WorkloadContainer{Role: roleMain}
		if seconds > 0 {
			main.StartedAt = &timestamppb.Timestamp{Seconds: seconds}
		}
		return &runnerv1.InspectWorkloadResponse{Id: id, Containers: []*runnerv1.WorkloadContainer{main}}
	}
	var ids []string
	for _, w := range youngestFirst([]*runnerv1.InspectWorkloadResponse{at("old", 1), nil, at("new", 2), at("starting", 0), at("old too", 1)}) {
		ids = append(ids, w.GetId())
	}
	if diff := cmp.Diff([]string{"starting", "new", "old", "old too"}, ids); diff != "" {
		t.Errorf("the order differs (-want +got)\n%s", diff)
	}
}
