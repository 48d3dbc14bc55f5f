package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// TestExecRefusals: what cannot begin is an event, and the call a good one. Nothing
// was tried.
func TestExecRefusals(t *testing.T) {
	client, _, _ := serveExec(t, &fakeExecutor{run: func(context.Context, *workload.Command, workload.Session) (*workload.Exit, error) {
		t.Error("something runs")
		return nil, errors.New("x")
	}})
	changed := func(change func(*runnerv1.ExecStartRequest)) []*runnerv1.ExecRequest {
		return []*runnerv1.ExecRequest{startOf(id, change)}
	}
	variable := func(name, value string) []*runnerv1.ExecRequest {
		return changed(func(s *runnerv1.ExecStartRequest) { s.Options.Env = []*runnerv1.EnvVar{{Name: name, Value: value}} })
	}
	for name, c := range map[string]struct {
		messages []*runnerv1.ExecRequest
		code     string
		says     string
	}{
		"no message":            {nil, "exec_start_required", "first message"},
		"input first":           {[]*runnerv1.ExecRequest{input("x", false), startOf(id)}, "exec_start_required", "first message"},
		"a size first":          {[]*runnerv1.ExecRequest{resize(1, 1), startOf(id)}, "exec_start_required", "first message"},
		"no kind of message":    {[]*runnerv1.ExecRequest{{}, startOf(id)}, "exec_start_required", "first message"},
		"no target":             {[]*runnerv1.ExecRequest{startOf("")}, "exec_start_failed", `no workload ""`},
		"unknown workload":      {[]*runnerv1.ExecRequest{startOf("00000000-0000-4000-8000-00000000000b")}, "exec_start_failed", "no workload"},
		"malformed workload":    {[]*runnerv1.ExecRequest{startOf("x y")}, "exec_start_failed", `no workload "x y"`},
		"unknown container":     {[]*runnerv1.ExecRequest{startOf(id + ":nope")}, "exec_start_failed", `no container "nope"`},
		"a colon too many":      {[]*runnerv1.ExecRequest{startOf(id + ":first:x")}, "exec_start_failed", `no container "first:x"`},
		"no command":            {changed(func(s *runnerv1.ExecStartRequest) { s.CommandArgv = nil }), "exec_start_failed", "neither"},
		"an empty command":      {changed(func(s *runnerv1.ExecStartRequest) { s.CommandArgv = []string{"", "x"} }), "exec_start_failed", "neither"},
		"two commands":          {changed(func(s *runnerv1.ExecStartRequest) { s.CommandShell = "true" }), "exec_start_failed", "both"},
		"a variable of no name": {variable("", secret), "exec_start_failed", `called ""`},
		"a name with =":         {variable("A=B", secret), "exec_start_failed", `called "A=B"`},
		"a name with a NUL":     {variable("A\x00", secret), "exec_start_failed", `called "A\x00"`},
		"a value with a NUL":    {variable("A", secret+"\x00"), "exec_start_failed", "NUL"},
		"an argument with a NUL": {changed(func(s *runnerv1.ExecStartRequest) { s.CommandArgv = []string{"echo", secret + "\x00"} }),
			"exec_start_failed", "NUL"},
		"a script with a NUL": {changed(func(s *runnerv1.ExecStartRequest) { s.CommandArgv, s.CommandShell = nil, "echo \x00" }),
			"exec_start_failed", "NUL"},
		"a folder with a NUL": {changed(func(s *runnerv1.ExecStartRequest) { s.Options.Workdir = "/\x00" }), "exec_start_failed", "NUL"},
		"an argument too long": {changed(func(s *runnerv1.ExecStartRequest) { s.CommandArgv = []string{"echo", strings.Repeat("x", 131072)} }),
			"exec_start_failed", "of 131072 bytes is longer than the 131071"},
		"a variable too long": {variable("A", strings.Repeat("x", 131070)), "exec_start_failed", "of 131072 bytes is longer than the 131071"},
	} {
		t.Run(name, func(t *testing.T) {
			a := exec(t, client, c.messages...)
			if a.err != nil || a.cause != nil || len(a.events) != 1 {
				t.Fatalf("error %v, cause %q, events %v", a.err, a.cause, a.events)
			}
			failure := a.events[0].GetError()
			if failure.GetCode() != c.code || !strings.Contains(failure.GetMessage(), c.says) || failure.GetRetryable() {
				t.Errorf("the failure is %v", failure)
			}
			if strings.Contains(failure.GetMessage(), secret) {
				t.Errorf("the failure tells a value: %s", failure.GetMessage())
			}
		})
	}
}

func TestReadCommand(t *testing.T) {
	target := workload.Target{ID: id, UID: "uid", Container: "first"}
	command := func(change func(*workload.Command)) *workload.Command {
		c := &workload.Command{Target: target, Argv: []string{"true"}, Tail: 64 << 10}
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		change func(*runnerv1.ExecStartRequest)
		want   *workload.Command
	}{
		"nothing else": {func(*runnerv1.ExecStartRequest) {}, command(func(*workload.Command) {})},
		"no options":   {func(s *runnerv1.ExecStartRequest) { s.Options = nil }, command(func(*workload.Command) {})},
		"a script": {
			func(s *runnerv1.ExecStartRequest) { s.CommandArgv, s.CommandShell = nil, "a | b" },
			command(func(c *workload.Command) { c.Argv = []string{"/bin/sh", "-c", "a | b"} }),
		},
		"empty arguments": {
			func(s *runnerv1.ExecStartRequest) { s.CommandArgv = []string{"echo", "", "$(A)\n"} },
			command(func(c *workload.Command) { c.Argv = []string{"echo", "", "$(A)\n"} }),
		},
		"the longest strings": {
			func(s *runnerv1.ExecStartRequest) {
				s.CommandArgv = []string{"echo", strings.Repeat("x", 131071)}
				s.Options.Env = []*runnerv1.EnvVar{{Name: "A", Value: strings.Repeat("x", 131069)}}
			},
			command(func(c *workload.Command) {
				c.Argv = []string{"echo", strings.Repeat("x", 131071)}
				c.Env = []workload.EnvVar{{Name: "A", Value: strings.Repeat("x", 131069)}}
			}),
		},
		"all options": {
			func(s *runnerv1.ExecStartRequest) {
				s.RequestId = "x"
				s.Options = &runnerv1.ExecOptions{
					Workdir: "/w", Env: []*runnerv1.EnvVar{{Name: "a.b-c", Value: ""}, {Name: "B", Value: "x=y\n"}, {Name: "B", Value: "z"}},
					TimeoutMs: 1500, IdleTimeoutMs: 1, Tty: true, SeparateStderr: true, KillOnTimeout: true, LogToPid1: true, ExitTailBytes: 10,
				}
			},
			command(func(c *workload.Command) {
				*c = workload.Command{
					Target: target, Argv: []string{"true"}, Dir: "/w",
					Env:     []workload.EnvVar{{Name: "a.b-c"}, {Name: "B", Value: "x=y\n"}, {Name: "B", Value: "z"}},
					Timeout: 1500 * time.Millisecond, Idle: time.Millisecond, TTY: true, Separate: true, Kill: true, ToLog: true, Tail: 10,
				}
			}),
		},
		"the longest time": {
			func(s *runnerv1.ExecStartRequest) { s.Options.TimeoutMs = 9223372036854 },
			command(func(c *workload.Command) { c.Timeout = 9223372036854 * time.Millisecond }),
		},
		"more than there can be": {
			func(s *runnerv1.ExecStartRequest) {
				s.Options = &runnerv1.ExecOptions{TimeoutMs: 9223372036855, IdleTimeoutMs: 1<<64 - 1, ExitTailBytes: 1 << 63}
			},
			command(func(c *workload.Command) { c.Tail = 256 << 10 }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readCommand(startOf(id, c.change).GetStart(), target)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestExecTarget(t *testing.T) {
	s := NewServer(Parts{Workloads: &fake{states: map[string]*workload.State{id: twoContainers()}}})
	for ref, want := range map[string]string{
		id: "first", "workload-" + id: "first", id + ":": "first", id + ":first": "first", id + ":proxy": "proxy", "workload-" + id + ":proxy": "proxy",
	} {
		if got, err := s.execTarget(ref); err != nil || got != (workload.Target{ID: id, UID: "uid", Container: want}) {
			t.Errorf("%s is %v (%v)", ref, got, err)
		}
	}
}
