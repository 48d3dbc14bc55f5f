package rpc

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

func runs(status workload.Status) *workload.State {
	return &workload.State{ID: id, UID: "uid", Containers: []workload.ContainerState{
		{Name: "init", Role: workload.RoleInit, Status: workload.Running}, {Name: "first", Role: workload.RoleMain, Status: status},
		{Name: "side", Role: workload.RoleSidecar, Status: workload.Running},
	}}
}

func TestPutArchive(t *testing.T) {
	f := &fake{states: map[string]*workload.State{id: runs(workload.Running)}}
	client, _, _ := serve(t, f)
	want := []putting{}
	for _, size := range []int{0, 1, maxArchive} {
		_, err := client.PutArchive(context.Background(), &runnerv1.PutArchiveRequest{WorkloadId: "workload-" + id, Path: "/w", TarPayload: make([]byte, size)})
		if err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		want = append(want, putting{workload.Target{ID: id, UID: "uid", Container: "first"}, "/w", size})
	}
	if diff := cmp.Diff(want, f.put); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPutArchiveRefused(t *testing.T) {
	large := make([]byte, maxArchive+1)
	for name, c := range map[string]struct {
		state   *workload.State
		payload []byte
		err     error
		want    answer
	}{
		"a container that waits": {runs(workload.Waiting), nil, nil, answer{Code: codes.FailedPrecondition, Token: "container_not_running", Reason: "CONTAINER_NOT_RUNNING"}},
		"one that has ended":     {runs(workload.Terminated), nil, nil, answer{Code: codes.FailedPrecondition, Token: "container_not_running", Reason: "CONTAINER_NOT_RUNNING"}},
		"no container":           {&workload.State{ID: id}, nil, nil, answer{Code: codes.FailedPrecondition, Token: "container_not_running", Reason: "CONTAINER_NOT_RUNNING"}},
		"a byte too many":        {runs(workload.Running), large, nil, answer{Code: codes.ResourceExhausted, Token: "archive_too_large", Reason: "ARCHIVE_TOO_LARGE"}},
		"what Put says":          {runs(workload.Running), nil, workload.Errorf(workload.Unavailable, "archive_interrupted", "x"), answer{Code: codes.Unavailable, Token: "archive_interrupted", Reason: "ARCHIVE_INTERRUPTED"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{states: map[string]*workload.State{id: c.state}, err: c.err}
			client, _, _ := serve(t, f)
			_, err := client.PutArchive(context.Background(), &runnerv1.PutArchiveRequest{WorkloadId: id, Path: "/w", TarPayload: c.payload})
			c.want.Domain = "k8s-runner"
			if diff := cmp.Diff(c.want, answerOf(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.payload != nil && !strings.Contains(err.Error(), "1048576") {
				t.Errorf("the limit is not told: %v", err)
			}
			if c.err == nil && len(f.put) > 0 {
				t.Errorf("it was put: %v", f.put)
			}
		})
	}
}

// TestFarTooLarge: gRPC refuses before the runner sees it, with the same code.
func TestFarTooLarge(t *testing.T) {
	client, _, _ := serve(t, &fake{states: map[string]*workload.State{id: runs(workload.Running)}})
	for _, size := range []int{2 * maxArchive, 2*maxArchive + maxRequest - 1000, 2*maxArchive + maxRequest + 1000, 100 << 20} {
		_, err := client.PutArchive(context.Background(), &runnerv1.PutArchiveRequest{WorkloadId: id, Path: "/w", TarPayload: make([]byte, size)})
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%d bytes: %v", size, err)
		}
		if told := strings.HasPrefix(status.Convert(err).Message(), "archive_too_large: "); told != (size < 2*maxArchive+maxRequest) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestOtherRequestsStaySmall: that archives are large makes no other request so.
func TestOtherRequestsStaySmall(t *testing.T) {
	client, _, _ := serve(t, &fake{})
	want := answer{Code: codes.ResourceExhausted, Token: "request_too_large", Reason: "REQUEST_TOO_LARGE", Domain: "k8s-runner"}
	for size, refused := range map[int]bool{maxRequest - 1000: false, maxRequest + 1000: true} {
		_, err := client.StartWorkload(context.Background(), &runnerv1.StartWorkloadRequest{InlineFiles: map[string][]byte{"/a": bytes.Repeat([]byte("x"), size)}})
		if got := status.Code(err) == codes.ResourceExhausted; got != refused {
			t.Errorf("a start of %d bytes: %v", size, err)
		}
		if refused {
			if diff := cmp.Diff(want, answerOf(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
	stream, err := client.StreamWorkloadLogs(context.Background(), &runnerv1.StreamWorkloadLogsRequest{ContainerName: strings.Repeat("x", maxRequest)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	if diff := cmp.Diff(want, answerOf(t, err)); diff != "" {
		t.Errorf("of a stream (-want +got):\n%s", diff)
	}
}
