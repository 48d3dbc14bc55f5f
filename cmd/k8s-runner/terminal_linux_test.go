package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// pseudoTerminal is one with its two ends: the side of a person, and that of a
// program.
type pseudoTerminal struct {
	person, program *os.File
	// screen is what the person has seen.
	screen lockedBuffer
}

func newPseudoTerminal(t *testing.T, columns, rows uint16) *pseudoTerminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	p := &pseudoTerminal{person: person}
	var number int
	control(t, person, func(fd int) error {
		if number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	})
	if p.program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	p.resize(t, columns, rows)
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		data := make([]byte, 1<<10)
		for {
			n, err := person.Read(data)
			if err != nil {
				return
			}
			_, _ = p.screen.Write(data[:n])
		}
	}()
	t.Cleanup(func() {
		_ = p.program.Close()
		_ = person.Close()
		<-seen
	})
	return p
}

// control calls do with the descriptor of file, which stays as it is.
func control(t *testing.T, file *os.File, do func(fd int) error) {
	t.Helper()
	conn, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if control := conn.Control(func(fd uintptr) { err = do(int(fd)) }); control != nil || err != nil {
		t.Fatal(control, err)
	}
}

func (p *pseudoTerminal) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	control(t, p.person, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
}

func (p *pseudoTerminal) keys(t *testing.T, keys string) {
	t.Helper()
	if _, err := p.person.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

func (p *pseudoTerminal) settings(t *testing.T) (settings unix.Termios) {
	t.Helper()
	control(t, p.program, func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			settings = *got
		}
		return err
	})
	return settings
}

// start starts a process at the terminal; standard error is not the terminal's.
func (p *pseudoTerminal) start(t *testing.T, process *process) *process {
	t.Helper()
	process.Stdin, process.Stdout = p.program, p.program
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return process.start(t)
}

// TestTerminal: every key goes to the command, and so does every size.
func TestTerminal(t *testing.T) {
	fake, address, id := serveFake(t)
	terminal := newPseudoTerminal(t, 132, 43)
	before := terminal.settings(t)
	p := terminal.start(t, newProcess(address, "exec", "-it", id, "keys"))
	terminal.screen.await(t, "ready\r\n")
	terminal.keys(t, "\x03\x1a\x1c\x04\r\t")
	terminal.screen.await(t, `keys "\x03\x1a\x1c\x04\r\t"`)
	if got := terminal.screen.String(); !strings.HasPrefix(got, "ready\r\nsize 132 x 43\r\n") {
		t.Errorf("the screen has %q", got)
	}
	if diff := cmp.Diff(before, terminal.settings(t)); diff == "" {
		t.Error("the terminal is as it was")
	}
	terminal.resize(t, 80, 25)
	terminal.screen.await(t, "size 80 x 25\r\n")
	terminal.keys(t, "q")
	p.wantExit(t, 7, "")
	if diff := cmp.Diff(before, terminal.settings(t)); diff != "" {
		t.Errorf("the terminal is not as before (-want +got)\n%s", diff)
	}
	if options := fake.onlyExec(t).start.GetOptions(); !options.GetTty() || options.GetSeparateStderr() {
		t.Errorf("the options are %v", options)
	}
}

// TestTerminalIsRestored: whatever ends a command leaves the terminal as it was.
func TestTerminalIsRestored(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		end     func(*testing.T, *fakeRunner, *pseudoTerminal, *process)
		code    int
		stderr  string
	}{
		"SIGTERM": {"wait", func(t *testing.T, _ *fakeRunner, _ *pseudoTerminal, p *process) { p.signal(t, syscall.SIGTERM) },
			exitInterrupted, "k8s-runner: the command was cancelled; its processes were killed\n"},
		"SIGTERM twice": {"deaf", func(t *testing.T, f *fakeRunner, _ *pseudoTerminal, p *process) {
			p.signal(t, syscall.SIGTERM)
			eventually(t, f.hasCancelled)
			for !p.hasExited() {
				_ = p.Process.Signal(syscall.SIGTERM)
				time.Sleep(10 * time.Millisecond)
			}
		}, exitInterrupted, "k8s-runner: interrupted; the command may still run\n"},
		"a call that breaks": {"snap", func(t *testing.T, _ *fakeRunner, terminal *pseudoTerminal, _ *process) { terminal.keys(t, "x") },
			exitNotRun, "k8s-runner: the call broke while the command ran, and it may still run: snap\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, address, id := serveFake(t)
			terminal := newPseudoTerminal(t, 80, 24)
			before := terminal.settings(t)
			p := terminal.start(t, newProcess(address, "exec", "-it", id, c.command))
			terminal.screen.await(t, "ready")
			if diff := cmp.Diff(before, terminal.settings(t)); diff == "" {
				t.Error("the terminal is as it was while the command runs")
			}
			c.end(t, fake, terminal, p)
			p.wantExit(t, c.code, c.stderr)
			if diff := cmp.Diff(before, terminal.settings(t)); diff != "" {
				t.Errorf("the terminal is not as before (-want +got)\n%s", diff)
			}
		})
	}
}
