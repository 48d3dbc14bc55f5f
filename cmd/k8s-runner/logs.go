package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

func newLogs() *cobra.Command {
	var follow, times bool
	var tail uint32
	var since, container string
	cmd := &cobra.Command{
		Use:   "logs [flags] ID",
		Short: "Print what a container wrote",
		Long: `Print what a container of a workload wrote, stdout and stderr together, byte for
byte.

--follow goes on until the container ends, and waits for one that has not started.
Each line comes once, whatever becomes of connections on the way. If the workload
is deleted meanwhile, the exit code is 6.

An ID is that of a workload, the name of its Pod, or the beginning of either.`,
		Example: `  k8s-runner logs 4f1c
  k8s-runner logs -f --tail 10 4f1c
  k8s-runner logs -t --since 5m -c docker-daemon 4f1c`,
		Args: oneRef,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "go on until the container ends")
	flags.Uint32VarP(&tail, "tail", "n", 0, "only so many of the last lines; 0: all")
	flags.StringVar(&since, "since", "", "only lines that are newer: a `DURATION` such as 5m, or a time such as 2024-05-06T07:08:09Z")
	flags.StringVarP(&container, "container", "c", "", "the container (default: the main one)")
	flags.BoolVarP(&times, "timestamps", "t", false, "print the time of each line before it")
	return clientCommand(cmd, func(cmd *cobra.Command, c client, args []string) error {
		from, err := sinceFlag(since, time.Now())
		if err != nil {
			return usage(cmd, err)
		}
		req := &runnerv1.StreamWorkloadLogsRequest{ContainerName: container, Follow: follow, TailLines: tail}
		if !from.IsZero() {
			req.SinceTime = timestamppb.New(from)
		}
		return c.each(cmd.Context(), args, "reading the log of", func(id string) error {
			req.WorkloadId = id
			return c.printLogs(cmd.Context(), req, &logPrinter{out: cmd.OutOrStdout(), times: times})
		})
	})
}

// oneRef wants a workload.
func oneRef(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the ID of one workload, not %d", len(args))
	}
	return nil
}

// sinceFlag reads a time, or how long ago it was; "" is the zero time.
func sinceFlag(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--since %q is neither a duration such as 5m nor a time such as 2024-05-06T07:08:09Z", text)
	}
	return at, nil
}

// printLogs prints a log until its end. That the user interrupts it is no error.
func (c client) printLogs(ctx context.Context, req *runnerv1.StreamWorkloadLogsRequest, print *logPrinter) error {
	if req.GetContainerName() == "" {
		w, err := c.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{WorkloadId: req.GetWorkloadId()})
		if err != nil {
			return err
		}
		req.ContainerName = summary{w}.mainContainer().GetName()
	}
	stream, err := c.StreamWorkloadLogs(ctx, req)
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF), err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := print.chunk(answer.GetChunk()); err != nil {
			return err
		}
	}
}

// logPrinter prints the chunks of a log.
type logPrinter struct {
	out   io.Writer
	times bool
	// inside is true in the middle of a line.
	inside bool
}

// timeForm has one width, so that lines stand below each other.
const timeForm = "2006-01-02T15:04:05.000000000Z"

func (p *logPrinter) chunk(c *runnerv1.LogChunk) error {
	data := c.GetData()
	if len(data) == 0 {
		return nil
	}
	if p.times && !p.inside {
		data = append([]byte(c.GetTs().AsTime().Format(timeForm)+" "), data...)
	}
	p.inside = data[len(data)-1] != '\n'
	_, err := p.out.Write(data)
	return err
}
