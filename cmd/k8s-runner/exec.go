package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const execHelp = `Run a command in a container of a workload, and end with its exit code.

Flags come before ID; all that follows it is the command (one "--" right after ID
is left out). A container that does not run yet is waited for, 30 seconds at most.

  -i    passes on standard input; without it the command gets none
  -t    gives the command a terminal
  -it   both, for a shell: every key goes to it, also Ctrl-C

Without -t, what the command writes to standard error stays apart. Ctrl-C, or
SIGTERM also with -t, kills the command and whatever it started, and waits for
that; once more leaves at once. A command that was left, or ended by --for or
--idle without --kill, may still run. --timeout is no limit for the command.

Exit codes: the command's own; 124 if --for or --idle ended it; 125 if it could not
be run, or nobody knows how it ended; 130 if it was interrupted. Standard error says
why. 2 is a wrong command line.

An ID is that of a workload, the name of its Pod, or the beginning of either.`

// execFlags are the flags of exec.
type execFlags struct {
	terminalFlags
	env                []string
	workdir, container string
	limit, idle        time.Duration
	kill, log          bool
}

func newExec() *cobra.Command {
	var flags execFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] ID [--] CMD [ARG...]",
		Short: "Run a command in a workload",
		Long:  execHelp,
		Example: `  k8s-runner exec 4f1c ls -l /work
  k8s-runner exec -it 4f1c sh
  k8s-runner exec -i 4f1c -- sh -c 'cat >/work/data' <data
  k8s-runner exec --for 1m --kill -e DEBUG=1 -w /work -c proxy 4f1c -- make test`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(cmd.Flags())
	cmd.Flags().SetInterspersed(false)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, _ []string) error {
		ref, argv := words(cmd.Flags(), false)
		if err := needRefs(cmd, cmd.Flags().Args()); err != nil {
			return usage(cmd, err)
		}
		start, err := flags.start(argv)
		if err == nil {
			err = flags.check(cmd.InOrStdin())
		}
		if err != nil {
			return usage(cmd, err)
		}
		interrupts, stop := notifyInterrupts(endSignals())
		defer stop()
		id, err := (&refs{client: c}).id(cmd.Context(), ref)
		if err != nil {
			return ofCommand(err)
		}
		start.TargetId = id
		if flags.container != "" {
			start.TargetId += ":" + flags.container
		}
		return flags.execute(cmd, c, start, interrupts)
	})
}

func (f *execFlags) add(flags *pflag.FlagSet) {
	f.terminalFlags.add(flags)
	flags.StringArrayVarP(&f.env, "env", "e", nil, "variable `KEY=VALUE`, or KEY alone to pass on the client's own")
	flags.StringVarP(&f.workdir, "workdir", "w", "", "`FOLDER` in which the command starts")
	flags.StringVarP(&f.container, "container", "c", "", "`NAME` of the container (default: the main one)")
	flags.DurationVar(&f.limit, "for", 0, "longest time that the command may take; 0: no limit")
	flags.DurationVar(&f.idle, "idle", 0, "longest time in which it may read and write nothing; 0: no limit")
	flags.BoolVar(&f.kill, "kill", false, "have it killed, with all that it started, when its time is up or nobody waits for it any more")
	flags.BoolVar(&f.log, "log", false, "also write its output into the container's log")
}

// start is the request to run argv, without its target.
func (f *execFlags) start(argv []string) (*runnerv1.ExecStartRequest, error) {
	options := &runnerv1.ExecOptions{
		Workdir: f.workdir, Tty: f.tty, SeparateStderr: !f.tty, KillOnTimeout: f.kill, LogToPid1: f.log,
		TimeoutMs: milliseconds(f.limit), IdleTimeoutMs: milliseconds(f.idle),
	}
	switch {
	case len(argv) == 0:
		return nil, errors.New("there is no command")
	case f.limit < 0, f.idle < 0:
		return nil, errors.New("--for and --idle cannot be below zero")
	}
	for _, text := range f.env {
		variable, err := readVariable(text)
		if err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		if variable != nil {
			options.Env = append(options.Env, variable)
		}
	}
	return &runnerv1.ExecStartRequest{CommandArgv: argv, Options: options}, nil
}

// milliseconds rounds up: none would mean no limit.
func milliseconds(d time.Duration) uint64 {
	return uint64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}
