package rpc

import (
	"math"
	"slices"
	"strings"
	"time"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

const (
	// defaultTail and maxTail are how much of the end of each stream an exit has,
	// in bytes.
	defaultTail = 64 << 10
	maxTail     = 256 << 10
	// maxArgument is the longest argument that Linux gives a process, in bytes
	// (MAX_ARG_STRLEN, with its NUL).
	maxArgument = 128<<10 - 1
)

// execTarget finds the container that ref means: an id or a Pod name, alone or with
// a colon and a container's name.
func (s *Server) execTarget(ref string) (workload.Target, error) {
	name, container, _ := strings.Cut(ref, ":")
	state, err := s.find(name)
	if err != nil {
		return workload.Target{}, badStart("there is no workload %q", name)
	}
	known := func(c workload.ContainerState) bool { return c.Name == container }
	switch {
	case container == "" && state.Main() != nil:
		container = state.Main().Name
	case !slices.ContainsFunc(state.Containers, known):
		return workload.Target{}, badStart("the workload %s has no container %q", state.ID, container)
	}
	return workload.Target{ID: state.ID, UID: state.UID, Container: container}, nil
}

func badStart(format string, args ...any) *workload.Error {
	return workload.Errorf(workload.InvalidArgument, "exec_start_failed", format, args...)
}

// readCommand reads a start message.
func readCommand(start *runnerv1.ExecStartRequest, target workload.Target) (*workload.Command, error) {
	argv, script, options := start.GetCommandArgv(), start.GetCommandShell(), start.GetOptions()
	switch {
	case len(argv) > 0 && script != "":
		return nil, badStart("command_argv and command_shell are both set")
	case script != "":
		argv = []string{"/bin/sh", "-c", script}
	case len(argv) == 0 || argv[0] == "":
		return nil, badStart("neither command_argv nor command_shell is set")
	}
	command := &workload.Command{
		Target: target, Argv: argv, Dir: options.GetWorkdir(), TTY: options.GetTty(), Separate: options.GetSeparateStderr(),
		ToLog: options.GetLogToPid1(), Timeout: milliseconds(options.GetTimeoutMs()), Idle: milliseconds(options.GetIdleTimeoutMs()),
		Kill: options.GetKillOnTimeout(), Tail: defaultTail,
	}
	if n := options.GetExitTailBytes(); n > 0 {
		command.Tail = int(min(n, maxTail))
	}
	for _, v := range options.GetEnv() {
		if v.GetName() == "" || strings.ContainsAny(v.GetName(), "=\x00") {
			return nil, badStart("options.env has a variable called %q", v.GetName())
		}
		command.Env = append(command.Env, workload.EnvVar{Name: v.GetName(), Value: v.GetValue()})
	}
	return command, checkStrings(command)
}

// checkStrings refuses what no process can be given.
func checkStrings(c *workload.Command) error {
	all := append(slices.Clone(c.Argv), c.Dir)
	for _, v := range c.Env {
		all = append(all, v.Name+"="+v.Value)
	}
	for _, s := range all {
		switch {
		case strings.ContainsRune(s, 0):
			return badStart("a NUL is in the command, its environment or its directory")
		case len(s) > maxArgument:
			return badStart("an argument or a variable of %d bytes is longer than the %d that a process can be given", len(s), maxArgument)
		}
	}
	return nil
}

// milliseconds is a duration; 0 means none, and what is too long for one is none.
func milliseconds(n uint64) time.Duration {
	if n > math.MaxInt64/uint64(time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
