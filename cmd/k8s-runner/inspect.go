package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

func newInspect() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect [flags] ID...",
		Short: "Show all that is known of workloads",
		Long: `Show all that is known of workloads: images, labels, mounts of the main
container, and for each container its state, exit code, restarts and times.

The fields of yaml and json are those of InspectWorkloadResponse in runner.proto.
Each workload is a document of its own.

An ID is that of a workload, the name of its Pod, or the beginning of either.`,
		Example: `  k8s-runner inspect 4f1c
  k8s-runner inspect -o table 4f1c
  k8s-runner inspect -o json 4f1c | jq -r .state_status`,
		Args: needRefs,
	}
	form := outputFlag(cmd.Flags(), formYAML, formJSON, formTable)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, args []string) error {
		written := 0
		return c.each(cmd.Context(), args, "inspecting", func(id string) error {
			w, err := c.InspectWorkload(cmd.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: id})
			if err != nil {
				return err
			}
			if err := separate(cmd.OutOrStdout(), form.value, written); err != nil {
				return err
			}
			written++
			return printWorkload(cmd.OutOrStdout(), form.value, w)
		})
	})
}

// separate writes what stands between two documents.
func separate(out io.Writer, form string, written int) error {
	if written == 0 || form == formJSON {
		return nil
	}
	between := "\n"
	if form == formYAML {
		between = "---\n"
	}
	_, err := io.WriteString(out, between)
	return err
}

func printWorkload(out io.Writer, form string, w *runnerv1.InspectWorkloadResponse) error {
	if form == formTable {
		_, err := io.WriteString(out, describe(w, time.Now()))
		return err
	}
	value, err := toJSON(w)
	if err != nil {
		return err
	}
	return printAs(out, form, value)
}

// describe sets a workload as text for people.
func describe(w *runnerv1.InspectWorkloadResponse, now time.Time) string {
	head := [][]string{
		{"ID:", w.GetId()},
		{"Image:", w.GetConfigImage()},
		{"Status:", summary{w}.status()},
		{"Labels:", labelText(w.GetConfigLabels())},
	}
	for _, m := range w.GetMounts() {
		text := fmt.Sprintf("%s %s at %s", m.GetType(), m.GetSource(), m.GetDestination())
		if m.GetReadOnly() {
			text += " (read-only)"
		}
		head = append(head, []string{"Mount:", text})
	}
	rows := [][]string{{"CONTAINER", "ROLE", "STATUS", "REASON", "EXIT", "RESTARTS", "AGE", "IMAGE"}}
	for _, c := range w.GetContainers() {
		exit := "-"
		if c.ExitCode != nil {
			exit = strconv.Itoa(int(c.GetExitCode()))
		}
		rows = append(rows, []string{
			c.GetName(), word(c.GetRole(), "CONTAINER_ROLE_"), word(c.GetStatus(), "CONTAINER_STATUS_"),
			cmp.Or(c.GetReason(), "-"), exit, strconv.Itoa(int(c.GetRestartCount())), age(c, now), c.GetImage(),
		})
	}
	return table(head...) + "\n" + table(rows...)
}

// word is the name of an enum's value without what all of them begin with.
func word(value fmt.Stringer, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}
