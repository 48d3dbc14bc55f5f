package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// quietAfter is how long nothing comes when all events that there are have come:
// the stream itself has no end, and no sign between old and new.
const quietAfter = time.Second

func newEvents() *cobra.Command {
	var follow bool
	var since string
	cmd := &cobra.Command{
		Use:   "events [flags] [ID]",
		Short: "Print the Kubernetes events of a workload, or of all",
		Long: `Print the Kubernetes events of the Pod of a workload, or all events of the runner's
namespace: when, what kind, why, of which object, and what happened. Kubernetes
forgets events after an hour.

--follow goes on with new events, and with those that happen again, until it is
interrupted. Without it, the command ends when for a second no event has come.

json is one event a line, as Kubernetes writes it.

An ID is that of a workload, the name of its Pod, or the beginning of either.`,
		Example: `  k8s-runner events 4f1c
  k8s-runner events -f --since 0s
  k8s-runner events -o json | jq -r 'select(.type == "Warning").message'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new events")
	cmd.Flags().StringVar(&since, "since", "", "only events that are newer: a `DURATION` such as 5m, or a time such as 2024-05-06T07:08:09Z")
	form := outputFlag(cmd.Flags(), formTable, formJSON)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, args []string) error {
		from, err := sinceFlag(since, time.Now())
		if err != nil {
			return usage(cmd, err)
		}
		req := &runnerv1.StreamEventsRequest{}
		if !from.IsZero() {
			req.Since = from.Unix()
		}
		show := func(id string) error {
			if id != "" {
				req.Filters = []*runnerv1.EventFilter{{Key: "involvedObject.name", Values: []string{workload.PodName(id)}}}
			}
			return c.printEvents(cmd.Context(), req, follow, func(e *runnerv1.RunnerEventData) error {
				return printEvent(cmd.OutOrStdout(), form.value, e)
			})
		}
		if len(args) > 0 {
			return c.each(cmd.Context(), args, "reading the events of", show)
		}
		if err := show(""); err != nil {
			return fmt.Errorf("reading events: %w", err)
		}
		return nil
	})
}

// printEvents prints events until the user interrupts it or, unless it follows,
// until none has come for a while.
func (c client) printEvents(ctx context.Context, req *runnerv1.StreamEventsRequest, follow bool, print func(*runnerv1.RunnerEventData) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.StreamEvents(ctx, req)
	if err != nil {
		return err
	}
	quiet := time.AfterFunc(quietAfter, func() {
		if !follow {
			cancel()
		}
	})
	defer quiet.Stop()
	for {
		answer, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF), err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		quiet.Reset(quietAfter)
		if err := print(answer.GetData()); err != nil {
			return err
		}
	}
}

func printEvent(out io.Writer, form string, data *runnerv1.RunnerEventData) error {
	if form == formJSON {
		_, err := fmt.Fprintln(out, data.GetJson())
		return err
	}
	var e corev1.Event
	if err := json.Unmarshal([]byte(data.GetJson()), &e); err != nil {
		return fmt.Errorf("reading an event: %w", err)
	}
	message := e.Message
	if e.Count > 1 {
		message += fmt.Sprintf(" (%d times)", e.Count)
	}
	object := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
	_, err := fmt.Fprintf(out, "%s  %-7s  %-20s  %-49s  %s\n",
		data.GetTs().AsTime().Format(time.RFC3339), printable(e.Type), printable(e.Reason), printable(object), printable(message))
	return err
}
