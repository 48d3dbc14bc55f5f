package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// execute runs exec with input, output and a command.
func execute(address, id string, input io.Reader, output io.Writer, command ...string) error {
	root := newRoot()
	root.SetArgs(append([]string{"exec", "--address", address, "-i", id}, command...))
	root.SetIn(input)
	root.SetOut(output)
	return root.ExecuteContext(context.Background())
}

// TestExecutionLeavesNothing: whatever ends a command, nothing goes on here but a
// read of input that does not come.
func TestExecutionLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    string
	}{
		"an end":            {"say x", "<nil>"},
		"a refusal":         {"refuse some_token x", "some_token: x; trying again can help"},
		"no word":           {"mute", "the runner did not say how the command ended"},
		"a broken call":     {"unimplemented", "is no runner, or one that lacks this call"},
		"output for nobody": {"flood", "writing the output: no room"},
	} {
		t.Run(name, func(t *testing.T) {
			others := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, others) }) // after the server's end
			_, address, id := serveFake(t)
			input, typed := io.Pipe()
			got := fmt.Sprint(execute(address, id, input, &full{t: t}, strings.Fields(c.command)...))
			if !strings.Contains(got, c.want) {
				t.Errorf("the error is %s, not %s", got, c.want)
			}
			typed.Close()
		})
	}
}

// full takes nothing that is long, and wants to be left alone then.
type full struct {
	t    *testing.T
	once bool
}

func (f *full) Write(data []byte) (int, error) {
	if f.once {
		f.t.Error("it is written to again")
	}
	if f.once = len(data) > 100; f.once {
		return 0, errors.New("no room")
	}
	return len(data), nil
}

// TestExecutionInput: input that breaks off is not at its end.
func TestExecutionInput(t *testing.T) {
	fake, address, id := serveFake(t)
	input := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("no more")))
	err := execute(address, id, input, io.Discard, "cat")
	if err == nil || err.Error() != "reading the input: no more" || exitCode(err) != exitNotRun {
		t.Errorf("the error is %v", err)
	}
	if x := fake.onlyExec(t); x.exit.GetReason() != runnerv1.ExecExitReason_EXEC_EXIT_REASON_CANCELLED {
		t.Errorf("the command ended with %v", x.exit)
	}
}
