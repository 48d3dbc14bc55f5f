package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// fakeExec is a command of the fake; its first word says what it does.
type fakeExec struct {
	stream runnerv1.RunnerService_ExecServer
	start  *runnerv1.ExecStartRequest
	// messages are the caller's, until it is gone.
	messages chan *runnerv1.ExecRequest
	// cancelled gets the force of a CancelExecution.
	cancelled chan bool
	// exit is how it ended.
	exit *runnerv1.ExecExit
}

func (f *fakeRunner) Exec(stream runnerv1.RunnerService_ExecServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if argv := first.GetStart().GetCommandArgv(); len(argv) > 2 && (argv[0] == "sh" || argv[0] == "tar") { // a script of cp
		return f.execHere(stream, first.GetStart())
	}
	x := &fakeExec{stream: stream, start: first.GetStart(), messages: make(chan *runnerv1.ExecRequest), cancelled: make(chan bool, 1)}
	go x.receive()
	id := uuid.NewString()
	f.mu.Lock()
	f.execs[id] = x
	f.mu.Unlock()
	target, _, _ := strings.Cut(x.start.GetTargetId(), ":")
	verb, args := x.start.GetCommandArgv()[0], x.start.GetCommandArgv()[1:]
	switch {
	case !f.has(target):
		return x.refuse("exec_start_failed", fmt.Sprintf("there is no workload %q", target), false)
	case verb == "refuse": // TOKEN MESSAGE
		return x.refuse(args[0], args[1], true)
	case verb == "hang": // before it begins
		<-stream.Context().Done()
		return nil
	case verb == "unimplemented":
		return status.Error(codes.Unimplemented, "method Exec not implemented")
	case verb == "vanish": // with its workload
		_ = f.remove(target)
	}
	x.send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Started{Started: &runnerv1.ExecStarted{ExecutionId: id}}})
	exit, err := x.run(verb, args)
	if exit != nil {
		f.mu.Lock()
		x.exit = exit
		f.mu.Unlock()
		x.send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Exit{Exit: exit}})
	}
	return err
}

func (f *fakeRunner) CancelExecution(_ context.Context, req *runnerv1.CancelExecutionRequest) (*runnerv1.CancelExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.execs[req.GetExecutionId()]
	if x != nil {
		x.cancelled <- req.GetForce()
	}
	return &runnerv1.CancelExecutionResponse{Cancelled: x != nil}, nil
}

// run returns how the command ended, or what the call ends with.
func (x *fakeExec) run(verb string, args []string) (*runnerv1.ExecExit, error) {
	switch verb {
	case "cat": // its input
		for {
			data, err := x.input()
			if err != nil {
				return x.ended(err), nil
			}
			x.stdout(string(data))
		}
	case "say": // OUT [ERR]
		x.stdout(args[0] + "\n")
		if len(args) > 1 {
			x.send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Stderr{Stderr: &runnerv1.ExecOutput{Data: []byte(args[1] + "\n")}}})
		}
	case "show": // how it was started
		var text bytes.Buffer
		if err := json.Compact(&text, []byte(protojson.Format(x.start))); err != nil {
			return nil, err
		}
		x.stdout(text.String() + "\n")
	case "exit": // CODE
		code, err := strconv.ParseInt(args[0], 10, 32)
		return &runnerv1.ExecExit{ExitCode: int32(code), Reason: runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED}, err
	case "end": // REASON CAUSE KILLED
		x.stream.SetTrailer(metadata.Pairs("k8s-runner-exit-cause", args[1]))
		reason := runnerv1.ExecExitReason(runnerv1.ExecExitReason_value["EXEC_EXIT_REASON_"+args[0]])
		return &runnerv1.ExecExit{ExitCode: -1, Reason: reason, Killed: args[2] == "true"}, nil
	case "mute": // about how it ends
		return nil, nil
	case "snap": // once there is input, or its end
		x.stdout("ready\n")
		_, _ = x.input()
		return nil, status.Error(codes.Unavailable, "snap")
	case "wait": // until it is cancelled
		x.stdout("ready\n")
		for {
			if _, err := x.input(); err != nil && !errors.Is(err, io.EOF) {
				return x.ended(err), nil
			}
		}
	case "deaf": // whoever cancels it
		x.stdout("ready\n")
		<-x.stream.Context().Done()
		return nil, nil
	case "flood": // until it is cancelled
		for len(x.cancelled) == 0 {
			if x.stdout(strings.Repeat("y\n", 1<<10)) != nil {
				return nil, nil
			}
		}
		return x.ended(errCancelled), nil
	case "keys": // shows what comes, until a q
		x.stdout("ready\r\n")
		return x.keys()
	}
	return x.ended(io.EOF), nil
}

// keys writes each piece of input, and each size, until a q comes.
func (x *fakeExec) keys() (*runnerv1.ExecExit, error) {
	for message := range x.messages {
		keys := message.GetStdin().GetData()
		switch {
		case message.GetResize() != nil:
			x.stdout(fmt.Sprintf("size %d x %d\r\n", message.GetResize().GetCols(), message.GetResize().GetRows()))
		case string(keys) == "q":
			return &runnerv1.ExecExit{ExitCode: 7, Reason: runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED}, nil
		case len(keys) > 0:
			x.stdout(fmt.Sprintf("keys %q\r\n", keys))
		}
	}
	return nil, nil
}

func (x *fakeExec) receive() {
	defer close(x.messages)
	for {
		message, err := x.stream.Recv()
		if err != nil {
			return
		}
		select {
		case x.messages <- message:
		case <-x.stream.Context().Done():
			return
		}
	}
}

var errCancelled = errors.New("it is cancelled")

// input returns the next input, and io.EOF after the last.
func (x *fakeExec) input() ([]byte, error) {
	for {
		select {
		case force := <-x.cancelled:
			x.cancelled <- force
			return nil, errCancelled
		case message, ok := <-x.messages:
			switch {
			case !ok:
				return nil, errors.New("the caller is gone")
			case message.GetStdin().GetEof():
				return nil, io.EOF
			case message.GetStdin() != nil:
				return message.GetStdin().GetData(), nil
			}
		}
	}
}

// ended is the exit of a command that ended because of err.
func (x *fakeExec) ended(err error) *runnerv1.ExecExit {
	if errors.Is(err, io.EOF) {
		return &runnerv1.ExecExit{Reason: runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED}
	}
	exit := &runnerv1.ExecExit{ExitCode: 137, Reason: runnerv1.ExecExitReason_EXEC_EXIT_REASON_CANCELLED}
	if errors.Is(err, errCancelled) {
		exit.Killed = <-x.cancelled
	}
	return exit
}

func (x *fakeExec) stdout(text string) error {
	return x.send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Stdout{Stdout: &runnerv1.ExecOutput{Data: []byte(text)}}})
}

func (x *fakeExec) refuse(code, message string, retryable bool) error {
	return x.send(&runnerv1.ExecResponse{Event: &runnerv1.ExecResponse_Error{Error: &runnerv1.ExecError{Code: code, Message: message, Retryable: retryable}}})
}

func (x *fakeExec) send(event *runnerv1.ExecResponse) error { return x.stream.Send(event) }
