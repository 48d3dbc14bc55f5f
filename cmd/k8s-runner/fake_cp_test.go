package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agynio/k8s-runner/cluster/files"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// image is that of a workload, empty if there is none.
func (f *fakeRunner) image(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.workloads[id]; w != nil {
		return w.request.GetMain().GetImage()
	}
	return ""
}

// PutArchive unpacks on this machine. The image "little" takes almost nothing.
func (f *fakeRunner) PutArchive(ctx context.Context, req *runnerv1.PutArchiveRequest) (*runnerv1.PutArchiveResponse, error) {
	image := f.image(req.GetWorkloadId())
	switch {
	case image == "":
		return nil, absent(req.GetWorkloadId())
	case image == "little" && len(req.GetTarPayload()) > 2048:
		return nil, fail(codes.ResourceExhausted, "archive_too_large: x", &errdetails.ErrorInfo{Reason: "ARCHIVE_TOO_LARGE"})
	case image == "closed":
		return nil, fail(codes.FailedPrecondition, "archive_read_only: x", &errdetails.ErrorInfo{Reason: "ARCHIVE_READ_ONLY"})
	}
	err := files.NewPutter(runHere).Put(ctx, workload.Target{}, req.GetPath(), req.GetTarPayload())
	if err != nil {
		return nil, fail(codes.InvalidArgument, err.Error(), &errdetails.ErrorInfo{Reason: "X"})
	}
	return &runnerv1.PutArchiveResponse{}, nil
}

func runHere(ctx context.Context, _ workload.Target, argv []string, stdin io.Reader) (files.Result, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return files.Result{Code: int32(cmd.ProcessState.ExitCode()), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}, err
}

// execHere runs the program on this machine; some images answer for it.
func (f *fakeRunner) execHere(stream runnerv1.RunnerService_ExecServer, start *runnerv1.ExecStartRequest) error {
	image := f.image(start.GetTargetId())
	if image == "" {
		return stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Error{Error: &runnerv1.ExecError{Code: "exec_start_failed", Message: "there is no workload"}}})
	}
	if sent, ok := hostile()[image]; ok {
		return f.lie(stream, image, sent)
	}
	cmd := exec.CommandContext(stream.Context(), start.GetCommandArgv()[0], start.GetCommandArgv()[1:]...)
	var mu sync.Mutex
	cmd.Stdout = writerFunc(func(p []byte) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Stdout{Stdout: &runnerv1.ExecOutput{Data: p}}})
	})
	cmd.Stderr = writerFunc(func(p []byte) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Stderr{Stderr: &runnerv1.ExecOutput{Data: p}}})
	})
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer stdin.Close()
		for {
			message, err := stream.Recv()
			if err != nil {
				return
			}
			if _, err := stdin.Write(message.GetStdin().GetData()); err != nil || message.GetStdin().GetEof() {
				return
			}
		}
	}()
	_ = cmd.Wait() // its code says it
	return stream.Send(exitOf(int32(cmd.ProcessState.ExitCode()), runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED))
}

type writerFunc func([]byte) error

func (f writerFunc) Write(p []byte) (int, error) { return len(p), f(p) }

func exitOf(code int32, reason runnerv1.ExecExitReason) *runnerv1.ExecResponse {
	return &runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Exit{Exit: &runnerv1.ExecExit{ExitCode: code, Reason: reason}}}
}

// lie sends an archive whatever was asked for.
func (f *fakeRunner) lie(stream runnerv1.RunnerService_ExecServer, image string, sent []byte) error {
	if err := stream.Send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Stdout{Stdout: &runnerv1.ExecOutput{Data: sent}}}); err != nil {
		return err
	}
	switch image {
	case "breaks":
		return status.Error(codes.Unavailable, "the node is gone")
	case "times-out":
		return stream.Send(exitOf(-1, runnerv1.ExecExitReason_EXEC_EXIT_REASON_TIMEOUT))
	case "silent":
		return nil
	}
	return stream.Send(exitOf(0, runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED))
}

// hostile are archives that workloads send, by image.
func hostile() map[string][]byte {
	whole := tarOf(&tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, &tar.Header{Name: "d/a", Typeflag: tar.TypeReg}, &tar.Header{Name: "d/b", Typeflag: tar.TypeReg})
	return map[string][]byte{
		"climbs": tarOf(&tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "d/../../evil", Typeflag: tar.TypeReg}),
		"links":  tarOf(&tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "d/l", Typeflag: tar.TypeSymlink, Linkname: "../.."}, &tar.Header{Name: "d/l/evil", Typeflag: tar.TypeReg}),
		"others": tarOf(&tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "evil", Typeflag: tar.TypeReg}),
		"leads": tarOf(&tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o777}, &tar.Header{Name: "d/l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
			&tar.Header{Name: "d/dev\x1b[2J", Typeflag: tar.TypeChar}, &tar.Header{Name: "d/f", Typeflag: tar.TypeReg, Mode: 0o4755}),
		"cuts": whole[:1024], "breaks": whole[:1024], "times-out": whole, "silent": whole, "empty": tarOf(),
	}
}

func tarOf(headers ...*tar.Header) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
