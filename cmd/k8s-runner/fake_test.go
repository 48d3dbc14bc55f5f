package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// fakeRunner is a runner without a cluster: it keeps workloads in memory, and
// the image of a workload says what becomes of it.
type fakeRunner struct {
	runnerv1.UnimplementedRunnerServiceServer
	k8srunnerv1.UnimplementedOperatorServiceServer

	mu        sync.Mutex
	workloads map[string]*fakeWorkload
	// volumes are the keys of named volumes.
	volumes map[string]string
	// execs are all commands by their ids.
	execs map[string]*fakeExec
}

type fakeWorkload struct {
	request  *runnerv1.StartWorkloadRequest
	inspects int
}

// newFakeRunner serves a fakeRunner on loopback and returns it and its address. An
// old one has no OperatorService.
func newFakeRunner(old bool, options ...grpc.ServerOption) (fake *fakeRunner, address string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	server := grpc.NewServer(options...)
	fake = &fakeRunner{workloads: map[string]*fakeWorkload{}, volumes: map[string]string{}, execs: map[string]*fakeExec{}}
	runnerv1.RegisterRunnerServiceServer(server, fake)
	if !old {
		k8srunnerv1.RegisterOperatorServiceServer(server, fake)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	stop = func() {
		server.Stop()
		<-ended
	}
	return fake, listener.Addr().String(), stop, nil
}

func (f *fakeRunner) StartWorkload(_ context.Context, req *runnerv1.StartWorkloadRequest) (*runnerv1.StartWorkloadResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch image := req.GetMain().GetImage(); {
	case strings.Contains(image, "://"):
		return nil, fail(codes.InvalidArgument, "invalid_image: main.image: no reference; labels[-]: no label",
			&errdetails.ErrorInfo{Reason: "INVALID_IMAGE"},
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
				{Field: "main.image", Reason: "INVALID_IMAGE", Description: "no reference"},
				{Field: "labels[-]", Reason: "INVALID_LABEL", Description: "no\nlabel"},
			}})
	case image == "terminating":
		return nil, fail(codes.FailedPrecondition, "workload_terminating: the Pod is still being deleted",
			&errdetails.ErrorInfo{Reason: "WORKLOAD_TERMINATING"}, &errdetails.RetryInfo{RetryDelay: durationpb.New(2e9)})
	}
	id := req.GetWorkloadId()
	if f.workloads[id] != nil && !proto.Equal(f.workloads[id].request, req) {
		return nil, fail(codes.AlreadyExists, "workload_exists: started by a different request", &errdetails.ErrorInfo{Reason: "WORKLOAD_EXISTS"})
	}
	f.workloads[id] = &fakeWorkload{request: req}
	for name, key := range namedVolumes(req) {
		f.volumes[name] = key
	}
	return &runnerv1.StartWorkloadResponse{Id: id}, nil
}

// InspectWorkload lets time pass by one step.
func (f *fakeRunner) InspectWorkload(_ context.Context, req *runnerv1.InspectWorkloadRequest) (*runnerv1.InspectWorkloadResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.workloads[req.GetWorkloadId()]
	if w == nil {
		return nil, absent(req.GetWorkloadId())
	}
	w.inspects++
	main := w.request.GetMain()
	container := &runnerv1.WorkloadContainer{Name: "main", Role: roleMain, Image: main.GetImage(), Status: running}
	out := &runnerv1.InspectWorkloadResponse{
		Id: req.GetWorkloadId(), Name: req.GetWorkloadId(), Image: main.GetImage(), ConfigImage: main.GetImage(),
		ConfigLabels: maps.Clone(w.request.GetLabels()),
		StateStatus:  "running", StateRunning: true,
		Containers: []*runnerv1.WorkloadContainer{container},
	}
	switch image := main.GetImage(); {
	case image == "missing", image == "slow" && w.inspects < 4:
		out.StateStatus, out.StateRunning = "pending", false
		container.Status = waiting
		container.Reason = proto.String("ContainerCreating")
		if w.inspects > 2 {
			container.Reason, container.Message = proto.String("ImagePullBackOff"), proto.String(`Back-off pulling image "slow"`)
		}
	case image == "fails":
		out.StateStatus, out.StateRunning = "failed", false
		container.Status, container.Reason, container.ExitCode = terminated, proto.String("Error"), proto.Int32(3)
	default:
		container.StartedAt = timestamppb.Now()
	}
	return out, nil
}

func (f *fakeRunner) FindWorkloadsByLabels(_ context.Context, req *runnerv1.FindWorkloadsByLabelsRequest) (*runnerv1.FindWorkloadsByLabelsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runnerv1.FindWorkloadsByLabelsResponse{}
	for _, id := range slices.Sorted(maps.Keys(f.workloads)) {
		main, labels := f.workloads[id].request.GetMain(), f.workloads[id].request.GetLabels()
		matches := req.GetAll() || main.GetImage() == "busybox"
		for key, value := range req.GetLabels() {
			matches = matches && labels[key] == value
		}
		if matches {
			out.TargetIds = append(out.TargetIds, id)
		}
	}
	if req.GetAll() {
		// One that is gone before anyone can inspect it.
		out.TargetIds = append(out.TargetIds, "ffffffff-0000-4000-8000-000000000000")
	}
	return out, nil
}

func (f *fakeRunner) StopWorkload(_ context.Context, req *runnerv1.StopWorkloadRequest) (*runnerv1.StopWorkloadResponse, error) {
	return &runnerv1.StopWorkloadResponse{}, f.remove(req.GetWorkloadId())
}

func (f *fakeRunner) RemoveWorkload(_ context.Context, req *runnerv1.RemoveWorkloadRequest) (*runnerv1.RemoveWorkloadResponse, error) {
	if req.GetRemoveVolumes() && !req.GetForce() {
		return nil, errors.New("a plain error")
	}
	return &runnerv1.RemoveWorkloadResponse{}, f.remove(req.GetWorkloadId())
}

// GetStatus tells of two layers and a refused edit.
func (f *fakeRunner) GetStatus(context.Context, *k8srunnerv1.GetStatusRequest) (*k8srunnerv1.GetStatusResponse, error) {
	return &k8srunnerv1.GetStatusResponse{Templates: &k8srunnerv1.TemplatesStatus{
		Served: true, Digest: "0123456789abcdef", LoadedAt: timestamppb.New(time.Now().Add(-90 * time.Minute)),
		Layers: []*k8srunnerv1.TemplateLayer{
			{Name: "a-values", Kind: "values", ResourceVersion: "12", Digest: "00000000000000aa"},
			{Name: "b-patch", Kind: "patches", ResourceVersion: "7", Digest: "00000000000000bb"},
		},
		Rejection: &k8srunnerv1.TemplatesRejection{
			Findings: []string{"b-patch/pool.yaml:3: spec.hostNetwork is refused"}, At: timestamppb.Now(), ConfigMaps: []string{"b-patch"},
		},
	}}, nil
}

// namedVolumes are the keys of the named volumes of a request, by claim.
func namedVolumes(req *runnerv1.StartWorkloadRequest) map[string]string {
	keys := map[string]string{}
	for _, v := range req.GetVolumes() {
		if v.GetKind() == runnerv1.VolumeKind_VOLUME_KIND_NAMED {
			keys[cmp.Or(v.GetPersistentName(), v.GetName())] = v.GetLabels()[workload.LabelVolumeKey]
		}
	}
	return keys
}

func (f *fakeRunner) ListVolumes(context.Context, *runnerv1.ListVolumesRequest) (*runnerv1.ListVolumesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runnerv1.ListVolumesResponse{}
	for _, name := range slices.Sorted(maps.Keys(f.volumes)) {
		out.Volumes = append(out.Volumes, &runnerv1.VolumeListItem{InstanceId: name, VolumeKey: f.volumes[name]})
	}
	return out, nil
}

func (f *fakeRunner) ListWorkloadsByVolume(_ context.Context, req *runnerv1.ListWorkloadsByVolumeRequest) (*runnerv1.ListWorkloadsByVolumeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runnerv1.ListWorkloadsByVolumeResponse{}
	for _, id := range slices.Sorted(maps.Keys(f.workloads)) {
		if _, uses := namedVolumes(f.workloads[id].request)[req.GetVolumeName()]; uses {
			out.TargetIds = append(out.TargetIds, id)
		}
	}
	return out, nil
}

func (f *fakeRunner) RemoveVolume(_ context.Context, req *runnerv1.RemoveVolumeRequest) (*runnerv1.RemoveVolumeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch req.GetVolumeName() {
	case "":
		return nil, fail(codes.InvalidArgument, "volume_name_required: name the claim", &errdetails.ErrorInfo{Reason: "VOLUME_NAME_REQUIRED"})
	case "foreign":
		return nil, fail(codes.FailedPrecondition, "claim_not_ours: the claim foreign stays", &errdetails.ErrorInfo{Reason: "CLAIM_NOT_OURS"})
	}
	delete(f.volumes, req.GetVolumeName())
	return &runnerv1.RemoveVolumeResponse{}, nil
}

// StreamWorkloadLogs sends what it was asked for; a workload that fails is deleted
// meanwhile.
func (f *fakeRunner) StreamWorkloadLogs(req *runnerv1.StreamWorkloadLogsRequest, stream grpc.ServerStreamingServer[runnerv1.StreamWorkloadLogsResponse]) error {
	f.mu.Lock()
	w := f.workloads[req.GetWorkloadId()]
	f.mu.Unlock()
	if w == nil {
		return absent(req.GetWorkloadId())
	}
	asked := fmt.Sprintf("container=%s follow=%v tail=%d", req.GetContainerName(), req.GetFollow(), req.GetTailLines())
	if since := req.GetSinceTime(); since != nil {
		asked += fmt.Sprintf(" since=%s ago", time.Since(since.AsTime()).Round(time.Hour))
	}
	for i, piece := range []string{asked + "\n", "a long ", "line\n", "\xff at the end\n"} {
		chunk := &runnerv1.LogChunk{Data: []byte(piece), Ts: timestamppb.New(time.Unix(int64(i), 5))}
		if err := stream.Send(&runnerv1.StreamWorkloadLogsResponse{Event: &runnerv1.StreamWorkloadLogsResponse_Chunk{Chunk: chunk}}); err != nil {
			return err
		}
	}
	if w.request.GetMain().GetImage() == "fails" {
		return fail(codes.Unavailable, "workload_deleted: the workload was deleted", &errdetails.ErrorInfo{Reason: "WORKLOAD_DELETED"})
	}
	return nil
}

// StreamEvents sends two events, of which the second tells what was asked for, and
// has no end.
func (f *fakeRunner) StreamEvents(req *runnerv1.StreamEventsRequest, stream grpc.ServerStreamingServer[runnerv1.StreamEventsResponse]) error {
	asked := ""
	for _, filter := range req.GetFilters() {
		asked += filter.GetKey() + "=" + strings.Join(filter.GetValues(), ",")
	}
	if req.GetSince() > 0 {
		asked += fmt.Sprintf(" since=%s ago", time.Since(time.Unix(req.GetSince(), 0)).Round(time.Hour))
	}
	for i, text := range []string{
		`{"involvedObject":{"kind":"Pod","name":"workload-x"},"type":"Normal","reason":"Started","message":"two\nlines"}`,
		fmt.Sprintf(`{"involvedObject":{"kind":"Pod","name":"workload-x"},"type":"Warning","reason":"BackOff","message":"asked for %s","count":3}`, asked),
	} {
		data := &runnerv1.RunnerEventData{Json: text, Ts: timestamppb.New(time.Unix(int64(i), 0))}
		if err := stream.Send(&runnerv1.StreamEventsResponse{Event: &runnerv1.StreamEventsResponse_Data{Data: data}}); err != nil {
			return err
		}
	}
	if len(req.GetFilters()) == 1 && strings.HasPrefix(req.GetFilters()[0].GetValues()[0], "workload-aabb") {
		return fail(codes.Unavailable, "shutting_down: this runner is ending", &errdetails.ErrorInfo{Reason: "SHUTTING_DOWN"})
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func (f *fakeRunner) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.workloads[id] != nil
}

func (f *fakeRunner) remove(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.workloads[id] == nil {
		return absent(id)
	}
	delete(f.workloads, id)
	return nil
}

func absent(id string) error {
	return fail(codes.NotFound, workload.NoSuchWorkload(id).Error(), &errdetails.ErrorInfo{Reason: "WORKLOAD_NOT_FOUND"})
}

// fail is an error as rpc makes them.
func fail(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		return err
	}
	return s.Err()
}
