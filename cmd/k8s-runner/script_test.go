package main

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this test binary as k8s-runner.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"k8s-runner": main})
}

// TestScripts runs testdata/*.txtar, each against fake runners of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for variable, old := range map[string]bool{addressVariable: false, "OLD": true} {
				_, address, stop, err := newFakeRunner(old)
				if err != nil {
					return err
				}
				env.Defer(stop)
				env.Setenv(variable, address)
			}
			env.Setenv("A", "aaaa0000-0000-4000-8000-000000000001")
			env.Setenv("B", "aabb0000-0000-4000-8000-000000000002")
			env.Setenv("ABSENT", "cccc0000-0000-4000-8000-000000000003")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"fails-with": failsWith},
	})
}

// failsWith runs a command, whose output "stdout" and "stderr" then see, and
// wants its exit code: fails-with CODE COMMAND ARG...
func failsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails-with CODE COMMAND ARG...")
	}
	var exit *exec.ExitError
	err := ts.Exec(args[1], args[2:]...)
	if !errors.As(err, &exit) || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("%v: want exit code %s, got %v", args[1:], args[0], err)
	}
}
