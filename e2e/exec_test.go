//go:build e2e

package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const (
	completed   = runnerv1.ExecExitReason_EXEC_EXIT_REASON_COMPLETED
	timedOut    = runnerv1.ExecExitReason_EXEC_EXIT_REASON_TIMEOUT
	idledOut    = runnerv1.ExecExitReason_EXEC_EXIT_REASON_IDLE_TIMEOUT
	cancelled   = runnerv1.ExecExitReason_EXEC_EXIT_REASON_CANCELLED
	runnerError = runnerv1.ExecExitReason_EXEC_EXIT_REASON_RUNNER_ERROR
)

// sleeping starts a workload that sleeps, and returns its id.
func (r *runner) sleeping(t testing.TB) string {
	t.Helper()
	req := sleeper()
	r.start(t, req)
	return req.GetWorkloadId()
}

func TestExec(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.sleeping(t) // it need not run yet
	t.Run("exit codes", func(t *testing.T) { testExitCodes(t, r, id) })
	t.Run("streams", func(t *testing.T) { testStreams(t, r, id) })
	t.Run("strings", func(t *testing.T) { testExecStrings(t, r, id) })
	t.Run("stdin", func(t *testing.T) { testStdin(t, r, id) })
	t.Run("terminal", func(t *testing.T) { testTerminal(t, r, id) })
	t.Run("refusals", func(t *testing.T) { testExecRefusals(t, r, id) })
	t.Run("unread input", func(t *testing.T) { testUnread(t, r, id) })
}

func testExitCodes(t *testing.T, r *runner, id string) {
	for text, want := range map[string]int32{
		"exit 0": 0, "exit 1": 1, "exit 42": 42, "/etc/passwd": 126, "no-such-command": 127, "kill -9 $$": 137,
	} {
		if exit := r.run(t, script(id, text)).exit; exit.GetExitCode() != want || exit.GetReason() != completed || exit.GetKilled() {
			t.Errorf("%q ended with %v", text, exit)
		}
	}
	// A Pod's name and a container's name do as well.
	argv := &runnerv1.ExecStartRequest{TargetId: "workload-" + id + ":main", CommandArgv: []string{"sh", "-c", "exit 7"}}
	if exit := r.run(t, argv).exit; exit.GetExitCode() != 7 {
		t.Errorf("it ended with %v", exit)
	}
}

func testStreams(t *testing.T, r *runner, id string) {
	const text = "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
	x := r.run(t, script(id, text, separate))
	if x.stdout.String() != "out1\nout2\nout3\n" || x.stderr.String() != "err1\nerr2\nerr3\n" {
		t.Errorf("apart: %q and %q", x.stdout.String(), x.stderr.String())
	}
	if string(x.exit.GetStdoutTail()) != "out1\nout2\nout3\n" || string(x.exit.GetStderrTail()) != "err1\nerr2\nerr3\n" {
		t.Errorf("the tails are %q and %q", x.exit.GetStdoutTail(), x.exit.GetStderrTail())
	}
	x = r.run(t, script(id, text))
	if x.stdout.String() != "out1\nerr1\nout2\nerr2\nout3\nerr3\n" || x.stderr.String() != "" {
		t.Errorf("merged: %q and %q", x.stdout.String(), x.stderr.String())
	}
	x = r.run(t, script(id, "seq 100000", func(o *runnerv1.ExecOptions) { o.ExitTailBytes = 10 }))
	if got := string(x.exit.GetStdoutTail()); got != "99\n100000\n" {
		t.Errorf("the tail is %q", got)
	}
	if want := x.stdout.String(); len(want) != 588895 || !strings.HasSuffix(want, "\n99999\n100000\n") {
		t.Errorf("%d bytes came", len(want))
	}
	x = r.run(t, script(id, "seq 100000", func(o *runnerv1.ExecOptions) { o.ExitTailBytes = 1 << 40 }))
	if got := len(x.exit.GetStdoutTail()); got != 256<<10 {
		t.Errorf("the longest tail has %d bytes", got)
	}
}

func testExecStrings(t *testing.T, r *runner, id string) {
	values := []string{"x", "$(A)", "a b", "two\nlines\n", `"'\`, "naïve 日本", "", "-n", "a=b"}
	start := &runnerv1.ExecStartRequest{
		TargetId:    id,
		CommandArgv: append([]string{"sh", "-c", `pwd; printf '%s|' "$@"; i=0; while [ $i -lt $# ]; do eval "printf '%s|' \"\$V_$i\""; i=$((i+1)); done`, "sh"}, values...),
		Options:     &runnerv1.ExecOptions{Workdir: "/tmp/a dir\nwith 'all'"},
	}
	for i, v := range values {
		start.Options.Env = append(start.Options.Env, &runnerv1.EnvVar{Name: fmt.Sprintf("V_%d", i), Value: v})
	}
	r.run(t, script(id, "mkdir -p \"/tmp/a dir\nwith 'all'\""))
	all := strings.Join(values, "|") + "|"
	if x := r.run(t, start); x.stdout.String() != start.GetOptions().GetWorkdir()+"\n"+all+all {
		t.Errorf("the process has %q", x.stdout.String())
	}
	x := r.run(t, script(id, "env | grep ^a.b-c=", func(o *runnerv1.ExecOptions) {
		o.Env = []*runnerv1.EnvVar{{Name: "a.b-c", Value: "dotted"}}
	}))
	if x.stdout.String() != "" && x.stdout.String() != "a.b-c=dotted\n" {
		t.Errorf("a variable that is no shell's is %q", x.stdout.String())
	}
	long := "# " + strings.Repeat("long ", 4<<10) + "\necho done"
	if x := r.run(t, script(id, long)); x.stdout.String() != "done\n" {
		t.Errorf("a script of %d bytes prints %q", len(long), x.stdout.String())
	}
}

func testStdin(t *testing.T, r *runner, id string) {
	t.Run("64 MiB and back", func(t *testing.T) {
		data := make([]byte, 64<<20)
		_, _ = rand.Read(data)
		x := r.execute(t, &runnerv1.ExecStartRequest{TargetId: id, CommandArgv: []string{"cat"}})
		begin := time.Now()
		x.stdin(t, data)
		x.send(t, &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: &runnerv1.ExecStdin{Eof: true}}})
		x.end(t)
		if !bytes.Equal([]byte(x.stdout.String()), data) {
			t.Errorf("%d bytes of %d come back, or others; exit %s %d %v", len(x.stdout.String()), len(data), x.exit.GetReason(), x.exit.GetExitCode(), x.stream.Trailer().Get("k8s-runner-exit-cause"))
		}
		t.Logf("64 MiB there and back in %s", time.Since(begin).Round(time.Millisecond))
	})
	t.Run("half-close", func(t *testing.T) {
		x := r.execute(t, script(id, "cat; sleep 1; echo done"))
		data := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
		x.stdin(t, data)
		if err := x.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if exit := x.end(t); exit.GetExitCode() != 0 || x.stdout.String() != string(data)+"done\n" {
			t.Errorf("%d bytes and exit %d", len(x.stdout.String()), exit.GetExitCode())
		}
	})
	t.Run("no input", func(t *testing.T) {
		x := r.execute(t, script(id, "cat >/dev/null; echo done"))
		x.id(t)
		if x.stdout.String() != "" {
			t.Error("the input ended by itself")
		}
		x.send(t, &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: &runnerv1.ExecStdin{Eof: true}}})
		if exit := x.end(t); exit.GetExitCode() != 0 || x.stdout.String() != "done\n" {
			t.Errorf("%q and exit %v", x.stdout.String(), exit)
		}
	})
}

func testTerminal(t *testing.T, r *runner, id string) {
	t.Run("first size", func(t *testing.T) {
		for range 5 {
			x := r.execute(t, &runnerv1.ExecStartRequest{TargetId: id, CommandArgv: []string{"stty", "size"}, Options: &runnerv1.ExecOptions{Tty: true}})
			x.resize(t, 132, 43)
			if x.end(t); x.stdout.String() != "43 132\r\n" {
				t.Errorf("the first size is %q", x.stdout.String())
			}
		}
	})
	t.Run("no size", func(t *testing.T) {
		if x := r.run(t, script(id, "stty size", terminal)); x.stdout.String() != "24 80\r\n" {
			t.Errorf("the size is %q", x.stdout.String())
		}
	})
	t.Run("twenty sizes", func(t *testing.T) {
		x := r.execute(t, script(id, "echo ready; read x; "+
			`i=0; until [ "$(stty size)" = "49 119" ] || [ $i -ge 100 ]; do i=$((i+1)); sleep 0.1; done; stty size`, terminal))
		x.awaitOutput(t, "ready")
		for i := range uint32(20) {
			x.resize(t, 100+i, 30+i)
		}
		x.stdin(t, []byte("\n"))
		if x.end(t); !strings.HasSuffix(x.stdout.String(), "49 119\r\n") {
			t.Errorf("the output is %q", x.stdout.String())
		}
	})
	t.Run("end of input", func(t *testing.T) {
		x := r.execute(t, script(id, "stty -echo; echo ready; cat; echo done", terminal))
		x.awaitOutput(t, "ready")
		x.stdin(t, []byte("abc"))
		x.send(t, &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: &runnerv1.ExecStdin{Eof: true}}})
		if exit := x.end(t); exit.GetExitCode() != 0 || x.stdout.String() != "ready\r\nabcdone\r\n" {
			t.Errorf("%q, exit %d", x.stdout.String(), exit.GetExitCode())
		}
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		x := r.execute(t, script(id, "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.1; done", terminal))
		x.awaitOutput(t, "ready")
		x.stdin(t, []byte{3})
		if exit := x.end(t); exit.GetExitCode() != 3 || !strings.Contains(x.stdout.String(), "interrupted") {
			t.Errorf("%q, exit %v", x.stdout.String(), exit)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		x := r.execute(t, script(id, "stty raw -echo; echo ready; head -c 9 | od -An -tx1", terminal))
		x.awaitOutput(t, "ready")
		x.stdin(t, []byte("é日\x00\xff\xd4\x80"))
		x.end(t)
		if out := strings.Join(strings.Fields(x.stdout.String()), " "); out != "ready c3 a9 e6 97 a5 00 ff d4 80" {
			t.Errorf("the terminal has %q", out)
		}
	})
}

func testExecRefusals(t *testing.T, r *runner, id string) {
	for name, c := range map[string]struct {
		start *runnerv1.ExecStartRequest
		code  string
	}{
		"no start":         {nil, "exec_start_required"},
		"unknown workload": {script("00000000-0000-4000-8000-00000000dead", "true"), "exec_start_failed"},
		"malformed target": {script("no workload", "true"), "exec_start_failed"},
		"no container":     {script(id+":nope", "true"), "exec_start_failed"},
		"no command":       {script(id, ""), "exec_start_failed"},
		"two commands":     {&runnerv1.ExecStartRequest{TargetId: id, CommandShell: "true", CommandArgv: []string{"true"}}, "exec_start_failed"},
		"no directory":     {script(id, "true", func(o *runnerv1.ExecOptions) { o.Workdir = "/nope" }), "exec_start_failed"},
		"too long":         {script(id, strings.Repeat("x", 200<<10)), "exec_start_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var x *execution
			if c.start == nil {
				stream, err := r.Exec(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				x = &execution{stream: stream, started: make(chan string, 1), ended: make(chan struct{})}
				x.resize(t, 1, 1)
				go x.read()
			} else {
				x = r.execute(t, c.start)
			}
			<-x.ended
			if x.err != nil || x.exit != nil || x.failure.GetCode() != c.code || x.failure.GetMessage() == "" {
				t.Errorf("error %v, exit %v, failure %v", x.err, x.exit, x.failure)
			}
		})
	}
}

// testUnread sends 8 MiB to processes that read none of it.
func testUnread(t *testing.T, r *runner, id string) {
	lines := bytes.Repeat([]byte("0123456789abcde\n"), 512<<10)
	t.Run("output", func(t *testing.T) {
		x := r.execute(t, script(id, "sleep 2; seq 1000; exit 5"))
		x.stdin(t, lines)
		if exit := x.end(t); exit.GetExitCode() != 5 || !strings.HasSuffix(x.stdout.String(), "\n999\n1000\n") {
			t.Errorf("exit %v after %d bytes", exit, len(x.stdout.String()))
		}
	})
	t.Run("resize", func(t *testing.T) {
		x := r.execute(t, script(id, "stty raw -echo; trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done", terminal))
		x.awaitOutput(t, "ready")
		x.stdin(t, lines)
		x.resize(t, 77, 55)
		x.awaitOutput(t, "55 77")
		x.resize(t, 78, 56)
		x.awaitOutput(t, "56 78")
		x.cancel()
		<-x.ended
	})
	t.Run("timeout", func(t *testing.T) {
		x := r.execute(t, script(id, "sleep 1000", timeout(time.Second), killing))
		x.id(t)
		begin := time.Now()
		x.stdin(t, lines)
		if exit := x.end(t); exit.GetReason() != timedOut || !exit.GetKilled() {
			t.Errorf("exit %v", exit)
		}
		if took := x.endedAt.Sub(begin); took > 3*time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		x := r.execute(t, script(id, "sleep 1000"))
		execution := x.id(t)
		x.stdin(t, lines)
		begin := time.Now()
		answer, err := r.CancelExecution(t.Context(), &runnerv1.CancelExecutionRequest{ExecutionId: execution})
		if err != nil || !answer.GetCancelled() {
			t.Errorf("the answer is %v, %v", answer, err)
		}
		if exit := x.end(t); exit.GetReason() != cancelled || exit.GetKilled() || x.endedAt.Sub(begin) > 2*time.Second {
			t.Errorf("exit %v after %s", exit, x.endedAt.Sub(begin))
		}
	})
}
