package main

import (
	"fmt"

	"github.com/spf13/cobra"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

func newStop() *cobra.Command {
	var seconds uint32
	cmd := &cobra.Command{
		Use:   "stop [flags] ID...",
		Short: "End workloads gracefully",
		Long: `End workloads gracefully: their processes get SIGTERM and, when the grace is
over, SIGKILL; then the Pods go. The command does not wait for that.

An ID is that of a workload, the name of its Pod, or the beginning of either.`,
		Example: `  k8s-runner stop 4f1c
  k8s-runner stop -t 5 $(k8s-runner ps -q --filter label=team=blue)`,
		Args: needRefs,
	}
	cmd.Flags().Uint32VarP(&seconds, "time", "t", 0, "grace in seconds; 0: the Pod's own, 30 if nothing else was set")
	return clientCommand(cmd, func(cmd *cobra.Command, c client, args []string) error {
		return c.each(cmd.Context(), args, "stopping", func(id string) error {
			if _, err := c.StopWorkload(cmd.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: id, TimeoutSec: seconds}); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		})
	})
}
