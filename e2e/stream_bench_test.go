//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// bareExec is client-go as it comes, over one of its transports.
type bareExec struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	spdy      bool
}

func (x bareExec) run(ctx context.Context, id string, argv []string, stdin io.Reader, stdout io.Writer) error {
	where := x.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(x.namespace).Name("workload-"+id).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: argv, Stdin: stdin != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(x.config, "GET", where.String())
	if x.spdy {
		executor, err = remotecommand.NewSPDYExecutor(x.config, "POST", where)
	}
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: io.Discard})
}

// throughRunner is the same through the runner's Exec.
func (r *runner) throughRunner(ctx context.Context, id string, argv []string, stdin io.Reader, stdout io.Writer) error {
	stream, err := r.Exec(ctx)
	if err != nil {
		return err
	}
	start := &runnerv1.ExecStartRequest{TargetId: id, CommandArgv: argv, Options: &runnerv1.ExecOptions{SeparateStderr: true}}
	if err := stream.Send(&runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Start{Start: start}}); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- sendAll(stream, stdin) }()
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if _, err := stdout.Write(event.GetStdout().GetData()); err != nil {
			return err
		}
		if exit := event.GetExit(); exit != nil {
			if exit.GetReason() != completed || exit.GetExitCode() != 0 {
				return fmt.Errorf("it ended with %v", exit)
			}
			return <-sent
		}
		if failure := event.GetError(); failure != nil {
			return fmt.Errorf("it ended with %v", failure)
		}
	}
}

func sendAll(stream runnerv1.RunnerService_ExecClient, stdin io.Reader) error {
	buffer := make([]byte, 32<<10-64) // as large as gRPC sends without clearing a megabyte
	for stdin != nil {
		n, err := stdin.Read(buffer)
		if n > 0 {
			data := &runnerv1.ExecStdin{Data: buffer[:n]}
			if err := stream.Send(&runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: data}}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	return stream.CloseSend()
}

// counting counts what it is given.
type counting struct{ n int64 }

func (c *counting) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// zeros are n bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// BenchmarkExec measures commands through the runner against bare client-go in the
// same run, in turns: a command that does nothing, output, input.
func BenchmarkExec(b *testing.B) {
	const rounds, amount = 21, 64 << 20
	ns := newNamespace(b)
	r := startRunner(b, ns)
	id := r.sleeping(b)
	r.run(b, script(id, "true"))
	config, err := clientcmd.BuildConfigFromFlags("", ns.kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	bare := bareExec{config: config, client: kubernetes.NewForConfigOrDie(config), namespace: ns.name}
	bareSPDY := bare
	bareSPDY.spdy = true
	ways := map[string]func(context.Context, string, []string, io.Reader, io.Writer) error{
		"runner": r.throughRunner, "websocket": bare.run, "spdy": bareSPDY.run,
	}
	measure := func(b *testing.B, turns int, argv []string, in, out int64) map[string][]time.Duration {
		awaitIdle(b)
		took := map[string][]time.Duration{}
		for range turns {
			for name, run := range ways {
				var stdin io.Reader
				if in > 0 {
					stdin = zeros(in)
				}
				got, begin := &counting{}, time.Now()
				err := run(b.Context(), id, argv, stdin, got)
				switch {
				case err == nil && got.n == out:
					took[name] = append(took[name], time.Since(begin))
				case name == "runner":
					b.Fatalf("%d bytes, %v", got.n, err)
				default: // client-go gives up a connection whose pong is late
					b.Logf("bare %s broke after %s: %d bytes, %v", name, time.Since(begin), got.n, err)
				}
			}
		}
		return took
	}
	b.Run("true", func(b *testing.B) {
		for b.Loop() {
			took := measure(b, 100, []string{"true"}, 0, 0)
			ours, theirs := percentile(took["runner"], 50), min(percentile(took["websocket"], 50), percentile(took["spdy"], 50))
			b.ReportMetric(milliseconds(ours), "p50-ms")
			b.ReportMetric(milliseconds(percentile(took["websocket"], 50)), "websocket-p50-ms")
			b.ReportMetric(milliseconds(percentile(took["spdy"], 50)), "spdy-p50-ms")
			b.ReportMetric(milliseconds(ours-theirs), "ms-more-than-bare")
		}
	})
	for name, c := range map[string]struct {
		argv    []string
		in, out int64
	}{
		// In blocks as large as a pipe is.
		"stdout": {[]string{"sh", "-c", fmt.Sprintf("dd if=/dev/zero bs=65536 count=%d 2>/dev/null", amount>>16)}, 0, amount},
		// It counts, so that what is lost shows.
		"stdin": {[]string{"wc", "-c"}, amount, int64(len(fmt.Sprintln(amount)))},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				took := measure(b, rounds, c.argv, c.in, c.out)
				rate := func(way string) float64 {
					if len(took[way]) == 0 {
						return 0
					}
					return amount / (1 << 20) / percentile(took[way], 50).Seconds()
				}
				b.ReportMetric(rate("runner"), "MiB/s")
				b.ReportMetric(rate("websocket"), "websocket-MiB/s")
				b.ReportMetric(rate("spdy"), "spdy-MiB/s")
				b.ReportMetric(rate("runner")/max(rate("websocket"), rate("spdy")), "ratio")
			}
		})
	}
}

// BenchmarkLogs measures the reading of a log, every line with its time, through
// the runner against bare client-go in the same run, in turns. What client-go reads
// without the times, which are a third of all that comes, is shown beside it.
func BenchmarkLogs(b *testing.B) {
	const (
		rounds = 25
		lines  = 30_000
		line   = "0123456789012345678901234567890123456789012345678901234567890123456789\n"
		size   = int64(lines * len(line))
	)
	ns := newNamespace(b)
	r := startRunner(b, ns)
	req := sleeper()
	req.Main = shell(fmt.Sprintf("yes %s | head -n %d; sleep 1000", strings.TrimSpace(line), lines))
	r.start(b, req)
	id := req.GetWorkloadId()
	r.await(b, id, "it runs", running)
	config, err := clientcmd.BuildConfigFromFlags("", ns.kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(ns.name)
	open := func(times bool) (io.ReadCloser, error) {
		return pods.GetLogs("workload-"+id, &corev1.PodLogOptions{Container: "main", Timestamps: times}).Stream(b.Context())
	}
	ways := map[string]func() (int64, error){
		"runner": func() (int64, error) { return r.logSize(b.Context(), id) },
		"plain": func() (int64, error) {
			stream, err := open(false)
			if err != nil {
				return 0, err
			}
			defer stream.Close()
			return io.Copy(io.Discard, stream)
		},
		"bare": func() (int64, error) {
			stream, err := open(true)
			if err != nil {
				return 0, err
			}
			defer stream.Close()
			return sizeWithoutTimes(stream)
		},
	}
	eventually(b, 20*time.Second, "all is in the log", func() error {
		for name, read := range ways {
			n, err := read()
			if err != nil {
				return err
			}
			if n != size {
				return fmt.Errorf("%s reads %d bytes", name, n)
			}
		}
		return nil
	})
	for b.Loop() {
		awaitIdle(b)
		took := map[string][]time.Duration{}
		for range rounds {
			for name, read := range ways {
				begin := time.Now()
				if n, err := read(); err != nil || n != size {
					b.Fatalf("%s reads %d bytes: %v", name, n, err)
				}
				took[name] = append(took[name], time.Since(begin))
			}
		}
		rate := func(way string) float64 { return float64(size) / (1 << 20) / percentile(took[way], 50).Seconds() }
		b.ReportMetric(rate("runner"), "MiB/s")
		b.ReportMetric(rate("bare"), "bare-MiB/s")
		b.ReportMetric(rate("plain"), "bare-without-times-MiB/s")
		b.ReportMetric(rate("runner")/rate("bare"), "ratio")
	}
}

// logSize reads what the log of a workload has.
func (r *runner) logSize(ctx context.Context, id string) (n int64, err error) {
	stream, err := r.StreamWorkloadLogs(ctx, &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, ContainerName: "main"})
	if err != nil {
		return 0, err
	}
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += int64(len(chunk.GetChunk().GetData()))
	}
}

// sizeWithoutTimes reads lines, each with its time.
func sizeWithoutTimes(log io.Reader) (n int64, err error) {
	lines := bufio.NewReaderSize(log, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		at, text, _ := bytes.Cut(line, []byte(" "))
		if _, err := time.Parse(time.RFC3339Nano, string(at)); err != nil {
			return n, err
		}
		n += int64(len(text))
	}
}
