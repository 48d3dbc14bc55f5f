package main

import (
	"fmt"

	"github.com/spf13/cobra"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

func newRm() *cobra.Command {
	var force, volumes bool
	cmd := &cobra.Command{
		Use:   "rm [flags] ID...",
		Short: "Remove workloads, and their volumes if asked",
		Long: `Remove workloads: as stop does, or at once with --force. Their ephemeral volumes
go with them; the named ones stay unless --volumes is given.

An ID is that of a workload, the name of its Pod, or the beginning of either.`,
		Example: `  k8s-runner rm 4f1c
  k8s-runner rm -fv workload-4f1c9a52-1c1e-4d8f-9a50-0d3f6f1f7c11
  k8s-runner rm -f $(k8s-runner ps -aq)`,
		Args: needRefs,
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "kill the processes without grace")
	cmd.Flags().BoolVarP(&volumes, "volumes", "v", false, "also remove the named volumes that the workload mounts, with their data")
	return clientCommand(cmd, func(cmd *cobra.Command, c client, args []string) error {
		return c.each(cmd.Context(), args, "removing", func(id string) error {
			_, err := c.RemoveWorkload(cmd.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: force, RemoveVolumes: volumes})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		})
	})
}
