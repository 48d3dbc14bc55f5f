package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// program is one that runs in a workload.
type program struct {
	argv []string
	// stdin may be nil; reading it has to end once the program has.
	stdin  io.Reader
	stdout io.Writer
}

const (
	// piece is how much of standard input one message has, in bytes.
	piece = 64 << 10
	// complaint is how much of what a program says on standard error is told.
	complaint = 1 << 10
)

// run runs a program in the main container until it ends. Unless it ended well, there
// is an error, with what it complained of.
func (x *copying) run(p *program) error {
	ctx, cancel := context.WithCancelCause(x.cmd.Context())
	defer cancel(nil)
	stream, err := x.Exec(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Start{Start: &runnerv1.ExecStartRequest{
		RequestId: uuid.NewString(), TargetId: x.id, CommandArgv: p.argv,
		Options: &runnerv1.ExecOptions{SeparateStderr: true, KillOnTimeout: true},
	}}})
	if err != nil && !errors.Is(err, io.EOF) { // of which receiving tells the reason
		return err
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if err := feed(stream, p.stdin); err != nil {
			cancel(err)
		}
	}()
	err = p.receive(stream)
	if cause := context.Cause(ctx); cause != nil && x.cmd.Context().Err() == nil {
		err = cause // of reading standard input
	}
	cancel(nil)
	if closer, ok := p.stdin.(io.Closer); ok {
		_ = closer.Close() // so that feed ends
	}
	<-fed
	return err
}

// feed sends standard input. Its error is one of reading it; that of sending
// receives too.
func feed(stream runnerv1.RunnerService_ExecClient, stdin io.Reader) error {
	send := func(data []byte, end bool) error {
		return stream.Send(&runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: &runnerv1.ExecStdin{Data: data, Eof: end}}})
	}
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	for buffer := make([]byte, piece); ; {
		n, err := stdin.Read(buffer)
		if errors.Is(err, io.EOF) {
			_ = send(buffer[:n], true) // as above
			return nil
		}
		if err != nil {
			return err
		}
		if send(buffer[:n], false) != nil {
			return nil
		}
	}
}

// receive takes what a program writes, and says how it ended.
func (p *program) receive(stream runnerv1.RunnerService_ExecClient) error {
	var said strings.Builder
	for {
		message, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the runner does not say how it ended")
			}
			return fmt.Errorf("running %s: %w", p.argv[0], err)
		}
		switch event := message.GetEvent().(type) {
		case *runnerv1.ExecResponse_Stdout:
			if _, err := p.stdout.Write(event.Stdout.GetData()); err != nil {
				return err
			}
		case *runnerv1.ExecResponse_Stderr:
			data := event.Stderr.GetData()
			said.Write(data[:min(len(data), complaint-said.Len())])
		case *runnerv1.ExecResponse_Error:
			return fmt.Errorf("running %s: %s: %s", p.argv[0], event.Error.GetCode(), event.Error.GetMessage())
		case *runnerv1.ExecResponse_Exit:
			_, _ = stream.Recv() // that the call is over, too
			return p.ended(event.Exit, said.String())
		}
	}
}

func (p *program) ended(exit *runnerv1.ExecExit, said string) error {
	if exit.GetReason() != runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED {
		return fmt.Errorf("%s did not end by itself: %s", p.argv[0], exit.GetReason())
	}
	if exit.GetExitCode() == 0 {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return fmt.Errorf("%s ended with exit code %d: %s", p.argv[0], exit.GetExitCode(), printable(first))
}
