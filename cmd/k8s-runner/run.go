package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

const runHelp = `Start a workload and print its id.

Flags come before IMAGE; all that follows it is the command of the main container
(one "--" right after IMAGE is left out). Flags repeat where that makes sense.

--file reads a whole request, YAML in the fields of StartWorkloadRequest in
runner.proto, "-" is standard input. What else is given then changes it: -e,
--label and -v add (a variable or label that is there gets the new value); other
flags, IMAGE and a command replace (with nothing but a command: -f FILE -- CMD).

Volumes are ephemeral, they live and die with the workload:
  -v work:/work      one named work; the same name at two paths is one volume
  -v work:/work:ro   read-only in the main container
  -v /scratch        one without a name
A volume that the file declares, of either kind, is mounted by its name. Folders
of the machine cannot be mounted.

--wait returns once the main container runs or has ended, and tells on stderr
what it waits for. Ended with a failure means exit code 1.`

func newRun() *cobra.Command {
	var flags runFlags
	var wait, quiet bool
	var waitLimit time.Duration
	cmd := &cobra.Command{
		Use:   "run [flags] IMAGE [--] [CMD ARG...]",
		Short: "Start a workload",
		Long:  runHelp,
		Example: `  k8s-runner run busybox sh -c 'echo hi; sleep 60'
  k8s-runner run --wait -e GREETING=hello -v work:/work -w /work busybox -- sleep 60
  k8s-runner run -f examples/hello.yaml -e GREETING='another one'
  id=$(k8s-runner run -q --wait busybox sleep 60)`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the main container runs or has ended")
	cmd.Flags().DurationVar(&waitLimit, "wait-timeout", 5*time.Minute, "longest time for --wait; 0: no limit")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the id, no progress")
	cmd.Flags().SetInterspersed(false)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, _ []string) error {
		req, err := readRequest(flags.file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if err := flags.apply(req, cmd.Flags()); err != nil {
			return usage(cmd, err)
		}
		started, err := c.StartWorkload(cmd.Context(), req)
		if err != nil {
			return fmt.Errorf("starting a workload: %w", err)
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), started.GetId()); err != nil || !wait {
			return err
		}
		progress := cmd.ErrOrStderr()
		if quiet {
			progress = io.Discard
		}
		return c.wait(cmd.Context(), started.GetId(), waitLimit, progress)
	})
}
