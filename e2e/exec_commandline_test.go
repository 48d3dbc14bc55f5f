//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// commandLine is a k8s-runner that is a client of r.
type commandLine struct {
	*exec.Cmd
	stdout, stderr syncBuffer
}

func (r *runner) commandLine(stdin io.Reader, args ...string) *commandLine {
	c := &commandLine{Cmd: exec.Command(suite.binary, args...)}
	c.Env = append(os.Environ(), "RUNNER_ADDRESS="+r.address)
	c.Stdin, c.Stdout, c.Stderr = stdin, &c.stdout, &c.stderr
	return c
}

// wantExit waits for the end of c.
func (c *commandLine) wantExit(t testing.TB, code int) {
	t.Helper()
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := c.ProcessState.ExitCode(); got != code {
		t.Errorf("%v ended with %d and says %q", c.Args[1:], got, c.stderr.String())
	}
}

// TestExecCommandLine: exec and run as people use them.
func TestExecCommandLine(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.sleeping(t)
	r.run(t, script(id, "true"))
	for name, c := range map[string]struct {
		stdin          string
		args           []string
		code           int
		stdout, stderr string
	}{
		"streams":     {"", []string{"exec", id[:8], "--", "sh", "-c", "echo out; echo err >&2; exit 3"}, 3, "out\n", "err\n"},
		"input":       {"in\n", []string{"exec", "-i", id, "cat"}, 0, "in\n", ""},
		"no input":    {"in\n", []string{"exec", id, "cat"}, 0, "", ""},
		"environment": {"", []string{"exec", "-e", "A=b c", "-w", "/tmp", "-c", "main", id, "sh", "-c", `pwd; echo "$A"`}, 0, "/tmp\nb c\n", ""},
		"not there":   {"", []string{"exec", id, "no-such-command"}, 127, "", "sh: exec: line 11: no-such-command: not found\n"},
		"time-out": {
			"", []string{"exec", "--for", "500ms", "--kill", id, "sleep", "1000"}, 124, "",
			"k8s-runner: the command did not end within 500ms (--for); its processes were killed\n",
		},
		"of a workload of its own": {
			"in\n", []string{"run", "--rm", "-i", "-e", "A=b", "busybox", "sh", "-c", `cat; echo "$A"; exit 4`}, 4, "in\nb\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			line := r.commandLine(strings.NewReader(c.stdin), c.args...)
			if err := line.Start(); err != nil {
				t.Fatal(err)
			}
			line.wantExit(t, c.code)
			if line.stdout.String() != c.stdout || line.stderr.String() != c.stderr {
				t.Errorf("it writes %q and %q", line.stdout.String(), line.stderr.String())
			}
		})
	}
	t.Run("interrupt", func(t *testing.T) { testInterrupt(t, r, id) })
	t.Run("terminal", func(t *testing.T) { testShell(t, r) })
}

// testInterrupt: an interrupt kills all that the command has started.
func testInterrupt(t *testing.T, r *runner, id string) {
	line := r.commandLine(nil, "exec", id, "sh", "-c", tree("700"))
	if err := line.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "all processes of the tree are there", func() error {
		if n := r.left(t, id, "700"); n != treeSize {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	begin := time.Now()
	if err := line.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	line.wantExit(t, 130)
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it ended %s later", took)
	}
	if n := r.left(t, id, "700"); n != 0 || line.stderr.String() != "k8s-runner: the command was cancelled; its processes were killed\n" {
		t.Errorf("%d processes are left, and it says %q", n, line.stderr.String())
	}
}

// testShell talks to a shell in a workload of its own, which is gone after that.
func testShell(t *testing.T, r *runner) {
	person, program := pseudoTerminal(t)
	var screen syncBuffer
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		_, _ = io.Copy(&screen, person) // until all programs have left
	}()
	line := r.commandLine(program, "run", "--rm", "-itq", "busybox")
	line.Stdout = program
	line.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := line.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	await := func(text string) {
		t.Helper()
		eventually(t, 30*time.Second, fmt.Sprintf("the screen shows %q", text), func() error {
			if got := screen.String(); !strings.Contains(got, text) {
				return fmt.Errorf("it shows %q; %s", got, line.stderr.String())
			}
			return nil
		})
	}
	await("# ")
	for _, step := range []struct{ keys, shown string }{
		{"stty size\r", "43 132\r\n"}, {"sh -c 'echo now; sleep 1000'\r", "now\r\n"}, {"\x03", "^C"}, {"echo $?\r", "130\r\n"},
	} {
		if _, err := io.WriteString(person, step.keys); err != nil {
			t.Fatal(err)
		}
		await(step.shown)
	}
	found, err := r.FindWorkloadsByLabels(t.Context(), &runnerv1.FindWorkloadsByLabelsRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(person, "exit 5\r")
	line.wantExit(t, 5)
	<-seen
	eventually(t, 20*time.Second, "one Pod less is there", func() error {
		for _, id := range found.GetTargetIds() {
			_, err := suite.admin.CoreV1().Pods(r.namespace).Get(t.Context(), "workload-"+id, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
		}
		return errors.New("all are")
	})
}

// pseudoTerminal returns the ends of a terminal of 132 columns and 43 rows: a
// person's and a program's.
func pseudoTerminal(t testing.TB) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 132, Row: 43}))
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}
