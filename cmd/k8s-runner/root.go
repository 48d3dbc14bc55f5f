package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Groups of subcommands in the help.
const (
	groupService = "service"
	groupClient  = "client"
	groupOffline = "offline"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "k8s-runner",
		Short: "Starts workloads as Kubernetes Pods, for a platform that asks over gRPC",
		Long: `k8s-runner serves the RunnerService: a platform asks for a workload, the runner
renders its templates into manifests and sends them to Kubernetes. It is also
a client of that service, for people and scripts.`,
		Example: `  k8s-runner serve --kube-namespace workloads --grpc-address 127.0.0.1:50051
  k8s-runner run busybox sh -c 'echo hi; sleep 60'   # a client of it
  k8s-runner ps
  k8s-runner exec -it 4f1c sh
  k8s-runner stop 4f1c`,
		SilenceUsage:               true,
		SilenceErrors:              true,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
		Args:                       unknownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddGroup(
		&cobra.Group{ID: groupService, Title: "Service:"},
		&cobra.Group{ID: groupClient, Title: "Client of a running service:"},
		&cobra.Group{ID: groupOffline, Title: "For operators, without a cluster:"},
	)
	serve := newServe()
	serve.GroupID = groupService
	root.AddCommand(serve, newRun(), newExec(), newPs(), newInspect(), newLogs(), newEvents(), newStop(), newRm(), newVolumes(), newCp(), newRender(), newTemplates(), newCatalog(), newExitCodes(), newVersion(), newStatus(), newDrain())
	root.SetFlagErrorFunc(usage)
	for _, cmd := range append(root.Commands(), root) {
		cmd.Args = usageArgs(cmd.Args)
	}
	return root
}

// unknownCommand refuses words that are no subcommand, and suggests one.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("there is no command %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %q", args[0])
}

// usageArgs makes usage errors of the errors of check; nil takes anything.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		return usage(cmd, check(cmd, args))
	}
}
