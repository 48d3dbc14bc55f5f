package main

import (
	"github.com/spf13/cobra"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "k8s-runner",
		Short: "Starts workloads as Kubernetes Pods, for a platform that asks over gRPC",
		Long: `k8s-runner serves the RunnerService: a platform asks for a workload, the runner
renders its templates into manifests and applies them to Kubernetes.

  k8s-runner serve                     the service
  k8s-runner run IMAGE -- CMD          a client of a running service`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServe())
	return root
}
