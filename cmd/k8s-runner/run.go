package main

import (
	"fmt"

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
what it waits for. Ended with a failure means exit code 1.
` + attachedHelp

func newRun() *cobra.Command {
	var flags runFlags
	var attached attachment
	var wait waitFlags
	cmd := &cobra.Command{
		Use:   "run [flags] IMAGE [--] [CMD ARG...]",
		Short: "Start a workload",
		Long:  runHelp,
		Example: `  k8s-runner run busybox sh -c 'echo hi; sleep 60'
  k8s-runner run --wait -e GREETING=hello -v work:/work -w /work busybox -- sleep 60
  k8s-runner run -f examples/hello.yaml -e GREETING='another one'
  k8s-runner run --rm -it busybox sh
  id=$(k8s-runner run -q --wait busybox sleep 60)`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(cmd.Flags())
	attached.add(cmd.Flags())
	wait.add(cmd.Flags())
	cmd.Flags().SetInterspersed(false)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, _ []string) error {
		if err := attached.check(cmd.InOrStdin(), flags.file); err != nil {
			return usage(cmd, err)
		}
		req, err := readRequest(flags.file, cmd.InOrStdin())
		if err != nil && attached.asked() {
			return ofCommand(err)
		}
		if err != nil {
			return err
		}
		if err := flags.apply(req, cmd.Flags()); err != nil {
			return usage(cmd, err)
		}
		if attached.asked() {
			return attached.run(cmd, c, req, wait)
		}
		started, err := c.StartWorkload(cmd.Context(), req)
		if err != nil {
			return fmt.Errorf("starting a workload: %w", err)
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), started.GetId()); err != nil || !wait.wanted {
			return err
		}
		return c.wait(cmd.Context(), started.GetId(), wait.limit, wait.told(cmd))
	})
}
