package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const attachedHelp = `
-i, -t and --rm (as in run --rm -it IMAGE sh) run the command here and end with its
exit code. The main process of the workload only waits then, in place of what the
image would run, and the command (default: sh) is run beside it, as by exec: see
exec --help for Ctrl-C and exit codes. The image needs /bin/sh and sleep. --rm
removes the workload in the end, however it comes; named volumes stay. Without it
the workload goes on.`

// holdScript is the main process of such a workload: it ends when it is asked to,
// which a shell as process 1 does not by itself.
const holdScript = `trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done`

// attachment runs the command of a new workload here.
type attachment struct {
	terminalFlags
	remove bool
}

func (a *attachment) add(flags *pflag.FlagSet) {
	a.terminalFlags.add(flags)
	flags.BoolVar(&a.remove, "rm", false, "remove the workload when the command ends")
}

// asked reports whether the command is to run here.
func (a *attachment) asked() bool { return a.interactive || a.tty || a.remove }

// check refuses input that is none for the command; file is that of the request.
func (a *attachment) check(stdin any, file string) error {
	if a.interactive && file == "-" {
		return errors.New("standard input is either the request (--file -) or the command's (--interactive)")
	}
	return a.terminalFlags.check(stdin)
}

// run starts the workload of req and runs its command.
func (a *attachment) run(cmd *cobra.Command, c client, req *runnerv1.StartWorkloadRequest, wait waitFlags) (err error) {
	argv := hold(req.GetMain())
	signals := endSignals()
	interrupts, stop := notifyInterrupts(signals)
	defer stop()
	waiting, stopWaiting := signal.NotifyContext(cmd.Context(), signals...)
	defer stopWaiting()
	// What begins is begun, so that it can be removed.
	begun := context.WithoutCancel(cmd.Context())
	started, err := c.StartWorkload(begun, req)
	if err != nil {
		return ofCommand(fmt.Errorf("starting a workload: %w", err))
	}
	id := started.GetId()
	defer func() { err = errors.Join(err, a.leave(begun, c, id, wait.told(cmd))) }()
	progress := io.Discard
	if _, ok := terminalOf(cmd.ErrOrStderr()); ok {
		progress = wait.told(cmd)
	}
	switch err := c.wait(waiting, id, wait.limit, progress); {
	case errors.Is(err, errFailed):
		return notRun("%w; does the image have /bin/sh and sleep, which this needs?", err)
	case err != nil:
		return ofCommand(err)
	}
	return a.execute(cmd, c, &runnerv1.ExecStartRequest{
		TargetId: id, CommandArgv: argv, Options: &runnerv1.ExecOptions{Tty: a.tty, SeparateStderr: !a.tty},
	}, interrupts)
}

// hold has a container wait, and returns the command that it was to run.
func hold(main *runnerv1.ContainerSpec) []string {
	argv := main.GetCmd()
	if main.GetEntrypoint() != "" {
		argv = append([]string{main.GetEntrypoint()}, argv...)
	}
	if len(argv) == 0 {
		argv = []string{"sh"}
	}
	main.Entrypoint, main.Cmd = "/bin/sh", []string{"-c", holdScript}
	return argv
}

// leave removes workload id if that was asked for, or else tells that it goes on.
func (a *attachment) leave(ctx context.Context, c client, id string, told io.Writer) error {
	if !a.remove {
		_, _ = fmt.Fprintf(told, "Workload %s goes on; 'k8s-runner rm %s' removes it.\n", id, id) // lost, it is no failure
		return nil
	}
	_, err := c.RemoveWorkload(ctx, &runnerv1.RemoveWorkloadRequest{WorkloadId: id})
	if err != nil && exitCode(err) != exitNotFound {
		return fmt.Errorf("removing workload %s: %w", id, err)
	}
	return nil
}
