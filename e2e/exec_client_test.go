//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// execution is an Exec as its caller sees it.
type execution struct {
	stream runnerv1.RunnerService_ExecClient
	cancel context.CancelFunc
	// id is that of the execution, once it has started.
	started chan string
	ended   chan struct{}
	// What came, complete once ended is closed.
	stdout, stderr syncBuffer
	exit           *runnerv1.ExecExit
	failure        *runnerv1.ExecError
	err            error
	endedAt        time.Time
	// disorder is what was not in the order that the contract has.
	disorder []string
}

// execute begins an Exec and reads what comes.
func (r *runner) execute(t testing.TB, start *runnerv1.ExecStartRequest) *execution {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := r.Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	x := &execution{stream: stream, cancel: cancel, started: make(chan string, 1), ended: make(chan struct{})}
	x.send(t, &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Start{Start: start}})
	go x.read()
	return x
}

func (x *execution) read() {
	defer close(x.ended)
	defer func() { x.endedAt = time.Now() }()
	var out, errs uint64
	began := false
	for {
		event, err := x.stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			x.err = err
			return
		}
		if x.exit != nil || x.failure != nil {
			x.disorder = append(x.disorder, "something comes after the end")
		}
		switch e := event.GetEvent().(type) {
		case *runnerv1.ExecResponse_Started:
			if began {
				x.disorder = append(x.disorder, "it starts twice")
			}
			began = true
			x.started <- e.Started.GetExecutionId()
		case *runnerv1.ExecResponse_Stdout:
			if out++; e.Stdout.GetSeq() != out || !began {
				x.disorder = append(x.disorder, fmt.Sprintf("the %d. piece of stdout has seq %d", out, e.Stdout.GetSeq()))
			}
			_, _ = x.stdout.Write(e.Stdout.GetData())
		case *runnerv1.ExecResponse_Stderr:
			if errs++; e.Stderr.GetSeq() != errs || !began {
				x.disorder = append(x.disorder, fmt.Sprintf("the %d. piece of stderr has seq %d", errs, e.Stderr.GetSeq()))
			}
			_, _ = x.stderr.Write(e.Stderr.GetData())
		case *runnerv1.ExecResponse_Exit:
			x.exit = e.Exit
		case *runnerv1.ExecResponse_Error:
			x.failure = e.Error
		}
	}
}

func (x *execution) send(t testing.TB, message *runnerv1.ExecRequest) {
	t.Helper()
	if err := x.stream.Send(message); err != nil {
		t.Errorf("sending: %v", err)
	}
}

func (x *execution) stdin(t testing.TB, data []byte) {
	t.Helper()
	for piece := range slices.Chunk(data, 256<<10) {
		x.send(t, &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: &runnerv1.ExecStdin{Data: piece}}})
		if t.Failed() {
			return
		}
	}
}

func (x *execution) resize(t testing.TB, cols, rows uint32) {
	t.Helper()
	x.send(t, &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Resize{Resize: &runnerv1.ExecResize{Cols: cols, Rows: rows}}})
}

// id waits until the command has started.
func (x *execution) id(t testing.TB) string {
	t.Helper()
	select {
	case id := <-x.started:
		return id
	case <-x.ended:
		t.Fatalf("it did not start: %v, %v", x.failure, x.err)
	case <-time.After(time.Minute):
		t.Fatal("it does not start")
	}
	return ""
}

// awaitOutput waits until stdout has text.
func (x *execution) awaitOutput(t testing.TB, text string) {
	t.Helper()
	// Two hundred at once take a small node a while to start.
	eventually(t, 90*time.Second, fmt.Sprintf("the output has %q", text), func() error {
		if out := x.stdout.String(); !bytes.Contains([]byte(out), []byte(text)) {
			return fmt.Errorf("it is %q", out)
		}
		return nil
	})
}

// end waits for the end, and checks the order of what came.
func (x *execution) end(t testing.TB) *runnerv1.ExecExit {
	t.Helper()
	select {
	case <-x.ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not end")
	}
	if x.err != nil || x.failure != nil || len(x.disorder) > 0 || x.exit == nil {
		t.Fatalf("error %v, failure %v, disorder %v, exit %v, stderr %q", x.err, x.failure, x.disorder, x.exit, x.stderr.String())
	}
	return x.exit
}

// run runs a command to its end without input.
func (r *runner) run(t testing.TB, start *runnerv1.ExecStartRequest) *execution {
	t.Helper()
	x := r.execute(t, start)
	if err := x.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	x.end(t)
	return x
}

// script is the start of a shell command, changed.
func script(target, text string, change ...func(*runnerv1.ExecOptions)) *runnerv1.ExecStartRequest {
	start := &runnerv1.ExecStartRequest{TargetId: target, CommandShell: text, Options: &runnerv1.ExecOptions{}}
	for _, c := range change {
		c(start.GetOptions())
	}
	return start
}

func separate(o *runnerv1.ExecOptions) { o.SeparateStderr = true }
func terminal(o *runnerv1.ExecOptions) { o.Tty = true }
func killing(o *runnerv1.ExecOptions)  { o.KillOnTimeout = true }
func timeout(d time.Duration) func(*runnerv1.ExecOptions) {
	return func(o *runnerv1.ExecOptions) { o.TimeoutMs = uint64(d.Milliseconds()) }
}
func idle(d time.Duration) func(*runnerv1.ExecOptions) {
	return func(o *runnerv1.ExecOptions) { o.IdleTimeoutMs = uint64(d.Milliseconds()) }
}
