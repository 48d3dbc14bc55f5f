package main

import (
	"context"
	"errors"
	"io"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// maxInput is how much input travels at once, in bytes.
const maxInput = 32 << 10

func (x *execution) send(message *runnerv1.ExecRequest) error {
	x.sending.Lock()
	defer x.sending.Unlock()
	return x.stream.Send(message)
}

// sendInput passes on the input and its end. After that the call stays open in this
// direction, for sizes.
func (x *execution) sendInput() {
	for x.stdin != nil {
		data := make([]byte, maxInput)
		n, err := x.stdin.Read(data)
		if n > 0 && x.sendStdin(&runnerv1.ExecStdin{Data: data[:n]}) != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil { // which the command must not take for the end
			x.fail("reading the input", err)
			return
		}
	}
	_ = x.sendStdin(&runnerv1.ExecStdin{Eof: true})
}

func (x *execution) sendStdin(stdin *runnerv1.ExecStdin) error {
	return x.send(&runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: stdin}})
}

// passSizes tells the runner of each new size of the terminal.
func (x *execution) passSizes(ctx context.Context) {
	for {
		select {
		case <-x.resized:
			x.sendSize()
		case <-ctx.Done():
			return
		}
	}
}

func (x *execution) sendSize() {
	if size := x.size(); size != nil {
		_ = x.send(&runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Resize{Resize: size}})
	}
}
