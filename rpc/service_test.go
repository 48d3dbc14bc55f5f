package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/dynamicpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/workload"
)

func secretRequest() *runnerv1.StartWorkloadRequest {
	return &runnerv1.StartWorkloadRequest{
		WorkloadId: id,
		Main:       &runnerv1.ContainerSpec{Image: "busybox", Cmd: []string{secret}, Env: []*runnerv1.EnvVar{{Name: "TOKEN", Value: secret}}},
	}
}

// TestLogHasOneLineACall and no secret, whatever comes of the call.
func TestLogHasOneLineACall(t *testing.T) {
	invalid := secretRequest()
	invalid.Main.Env[0].Name = ""
	invalid.Main.Env = append(invalid.Main.Env, &runnerv1.EnvVar{Name: "A", Value: secret + "\x00"})
	credentials := secretRequest()
	credentials.InlineFiles = map[string][]byte{"/a": []byte(secret)}
	credentials.ImagePullCredentials = []*runnerv1.ImagePullCredential{{Password: secret}}
	for name, c := range map[string]struct {
		request *runnerv1.StartWorkloadRequest
		err     error
		panics  any
		code    codes.Code
		level   string
		says    string
	}{
		"success":               {secretRequest(), nil, nil, codes.OK, "info", ""},
		"an invalid one":        {invalid, nil, nil, codes.InvalidArgument, "info", "invalid_env_name"},
		"with a bad credential": {credentials, nil, nil, codes.InvalidArgument, "info", "invalid_credential"},
		"a conflict":            {secretRequest(), workload.Errorf(workload.AlreadyExists, "workload_exists", "x"), nil, codes.AlreadyExists, "info", "workload_exists"},
		"a cluster's no":        {secretRequest(), workload.Errorf(workload.Unavailable, "kubernetes_unavailable", "x").Because(errors.New("root-of-it")), nil, codes.Unavailable, "warning", "root-of-it"},
		"an unknown error":      {secretRequest(), errors.New("root-of-it"), nil, codes.Internal, "error", "root-of-it"},
		"a panic":               {secretRequest(), nil, "root-of-it", codes.Internal, "error", "root-of-it"},
		"a nil pointer":         {secretRequest(), nil, errors.New("root-of-it"), codes.Internal, "error", "rpc.(*fake).Start"},
	} {
		t.Run(name, func(t *testing.T) {
			client, log, stop := serve(t, &fake{err: c.err, panics: c.panics})
			_, err := client.StartWorkload(context.Background(), c.request)
			if got := status.Code(err); got != c.code {
				t.Errorf("the code is %v: %v", got, err)
			}
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "root-of-it")) {
				t.Errorf("the caller is told %v", err)
			}
			stop()
			text := log.String()
			if strings.Contains(text, secret) {
				t.Errorf("the log holds the secret:\n%s", text)
			}
			var line struct {
				Level  string `json:"level"`
				Method string `json:"grpc.method"`
				Code   string `json:"grpc.code"`
			}
			if strings.Count(text, "\n") != 1 || json.Unmarshal([]byte(text), &line) != nil {
				t.Fatalf("the log is not one line:\n%s", text)
			}
			if line.Level != c.level || line.Method != "StartWorkload" || line.Code != c.code.String() || !strings.Contains(text, c.says) {
				t.Errorf("the line is %s", text)
			}
		})
	}
}

// TestEveryCallIsLoggedOnce calls every RPC with an empty message.
func TestEveryCallIsLoggedOnce(t *testing.T) {
	conn, log, stop := connect(t, &fake{})
	methods := runnerv1.File_agynio_api_runner_v1_runner_proto.Services().ByName("RunnerService").Methods()
	unimplemented := 0
	for i := range methods.Len() {
		err := call(conn, methods.Get(i))
		if status.Code(err) == codes.Unimplemented {
			unimplemented++
			want := answer{Code: codes.Unimplemented, Token: "rpc_unimplemented", Reason: "RPC_UNIMPLEMENTED", Domain: "k8s-runner"}
			if diff := cmp.Diff(want, answerOf(t, err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", methods.Get(i).Name(), diff)
			}
		}
	}
	stop()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != methods.Len() {
		t.Errorf("%d calls have %d lines:\n%s", methods.Len(), len(lines), log)
	}
	for i := range methods.Len() {
		if name := string(methods.Get(i).Name()); strings.Count(log.String(), `"grpc.method":"`+name+`"`) != 1 {
			t.Errorf("%s is not logged once", name)
		}
	}
	if unimplemented != 4 {
		t.Errorf("%d RPCs are not there yet; README says which", unimplemented)
	}
}

func TestStart(t *testing.T) {
	req := requesttest.Renderable(t)
	spec, err := request.Parse(req)
	if err != nil {
		t.Fatal(err)
	}
	want := &runnerv1.StartWorkloadResponse{
		Id:     spec.ID,
		Status: runnerv1.WorkloadStatus_WORKLOAD_STATUS_STARTING,
		Containers: &runnerv1.WorkloadContainers{Main: "workload-" + spec.ID, Sidecars: []*runnerv1.SidecarInstance{
			{Name: "proxy", Id: "workload-" + spec.ID + ":proxy", Status: "starting"},
			{Name: "of-a-template", Id: "workload-" + spec.ID + ":of-a-template", Status: "starting"},
			{Name: "prepare", Id: "workload-" + spec.ID + ":prepare", Status: "starting"},
		}},
	}
	for name, c := range map[string]struct {
		state *workload.State
	}{
		// The cache may be behind: what is there, only the writer can say.
		"a new one":       {nil},
		"the same again":  {&workload.State{Digest: spec.Digest}},
		"the same, going": {&workload.State{Digest: spec.Digest, Terminating: true}},
		"another":         {&workload.State{Digest: "another"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{states: map[string]*workload.State{}, claims: map[string]string{"data": "k1"}}
			if c.state != nil {
				f.states[spec.ID] = c.state
			}
			client, _, _ := serve(t, f)
			got, err := client.StartWorkload(context.Background(), req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"workload-" + spec.ID, "files", "data"}, names(f.started)); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"workload-" + spec.ID, "data"}, names(f.shown)); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

func names(objects []*unstructured.Unstructured) (names []string) {
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	return names
}

// TestUnknownWorkloads are NotFound in every call, also if the id can be none.
func TestUnknownWorkloads(t *testing.T) {
	f := &fake{err: workload.NoSuchWorkload(id)}
	client, _, _ := serve(t, f)
	ctx := context.Background()
	for _, ref := range []string{"", "x", id, "workload-" + id, strings.ToUpper(id), "workload-x", id + ":main"} {
		for name, call := range map[string]func() error{
			"inspect": func() error {
				_, err := client.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{WorkloadId: ref})
				return err
			},
			"labels": func() error {
				_, err := client.GetWorkloadLabels(ctx, &runnerv1.GetWorkloadLabelsRequest{WorkloadId: ref})
				return err
			},
			"stop": func() error {
				_, err := client.StopWorkload(ctx, &runnerv1.StopWorkloadRequest{WorkloadId: ref})
				return err
			},
			"remove": func() error {
				_, err := client.RemoveWorkload(ctx, &runnerv1.RemoveWorkloadRequest{WorkloadId: ref})
				return err
			},
			"remove with volumes": func() error {
				_, err := client.RemoveWorkload(ctx, &runnerv1.RemoveWorkloadRequest{WorkloadId: ref, RemoveVolumes: true})
				return err
			},
			"put an archive": func() error {
				_, err := client.PutArchive(ctx, &runnerv1.PutArchiveRequest{WorkloadId: ref, Path: "/w"})
				return err
			},
			"touch": func() error {
				_, err := client.TouchWorkload(ctx, &runnerv1.TouchWorkloadRequest{WorkloadId: ref})
				return err
			},
		} {
			if err := call(); status.Code(err) != codes.NotFound || answerOf(t, err).Reason != "WORKLOAD_NOT_FOUND" {
				t.Errorf("%s %q: %v", name, ref, err)
			}
		}
	}
}

func TestTouch(t *testing.T) {
	f := &fake{states: map[string]*workload.State{id: {ID: id, UID: "uid"}}}
	client, _, _ := serve(t, f)
	const notShownYet = "00000000-0000-4000-8000-00000000000b"
	for _, ref := range []string{"workload-" + id, notShownYet} {
		if _, err := client.TouchWorkload(context.Background(), &runnerv1.TouchWorkloadRequest{WorkloadId: ref}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{id + "/uid", notShownYet + "/"}, f.touched); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReady(t *testing.T) {
	client, _, _ := serve(t, &fake{})
	got, err := client.Ready(context.Background(), &runnerv1.ReadyRequest{})
	if err != nil || got.GetStatus() != "ready" {
		t.Errorf("%v, %v", got, err)
	}
}

// call calls a method with an empty message, for its error.
func call(conn *grpc.ClientConn, m protoreflect.MethodDescriptor) error {
	ctx := context.Background()
	name := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return conn.Invoke(ctx, name, proto.Message(dynamicpb.NewMessage(m.Input())), dynamicpb.NewMessage(m.Output()))
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, name)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(dynamicpb.NewMessage(m.Input())) // the answer says what is wrong
	_ = stream.CloseSend()
	for {
		if err := stream.RecvMsg(dynamicpb.NewMessage(m.Output())); err != nil {
			return err
		}
	}
}
