package exec

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/agynio/k8s-runner/workload"
)

// Result is how a simple command ended.
type Result struct {
	Code int32
	// Stdout and Stderr are the last of what was written, 4 KiB at most each.
	Stdout, Stderr []byte
}

const simpleTail = 4 << 10

// Simple runs argv with stdin, nil for none, and nothing around it. Its error means
// that the command was not run, or that nobody knows how it ended.
func (e *Executor) Simple(ctx context.Context, target workload.Target, argv []string, stdin io.Reader) (Result, error) {
	conn, err := e.connect(ctx, process{target: target, argv: argv, noInput: stdin == nil})
	if err != nil {
		return Result{}, err
	}
	stop := context.AfterFunc(ctx, conn.close)
	defer stop()
	var writing sync.WaitGroup
	var reading error
	writing.Go(func() { reading = feed(conn, stdin) })
	result, err := collect(conn)
	conn.close()
	writing.Wait()
	switch {
	case reading != nil: // which ended the rest
		return result, reading
	case err != nil && ctx.Err() != nil:
		return result, context.Cause(ctx)
	}
	return result, err
}

// feed gives a process its standard input. Its error is one of reading stdin, after
// which the process has not been given all.
func feed(conn connection, stdin io.Reader) error {
	if stdin == nil {
		return nil
	}
	buffer := make([]byte, maxPiece)
	for {
		n, err := stdin.Read(buffer)
		if n > 0 && conn.write(buffer[:n]) != nil {
			return nil // the process has ended, or the connection, which the reader sees
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = conn.closeWrite() // if this fails the connection broke, which the reader sees
			return nil
		case err != nil:
			conn.close() // the process must not take this for the end
			return err
		}
	}
}

func collect(conn connection) (Result, error) {
	stdout, stderr := tail{limit: simpleTail}, tail{limit: simpleTail}
	var status []byte
	for {
		from, data, err := conn.read()
		switch {
		case err == nil && from == channelStdout:
			stdout.add(data)
		case err == nil && from == channelStderr:
			stderr.add(data)
		case err == nil && from == channelStatus:
			status = append(status, data...)
		}
		// The status is the last thing that a command without children brings.
		if !json.Valid(status) {
			switch {
			case errors.Is(err, io.EOF):
				return Result{}, errNoStatus
			case err != nil:
				return Result{}, err
			}
			continue
		}
		if err == nil {
			continue
		}
		code, err := decodeStatus(status)
		var refused *refusal
		if errors.As(err, &refused) {
			err = notStarted(workload.FailedPrecondition, "%s", refused.message)
		}
		return Result{Code: code, Stdout: stdout.bytes(), Stderr: stderr.bytes()}, err
	}
}
