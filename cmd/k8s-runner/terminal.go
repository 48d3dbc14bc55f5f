package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// terminalFlags say what a command in a container has of the terminal here.
type terminalFlags struct{ interactive, tty bool }

func (f *terminalFlags) add(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.interactive, "interactive", "i", false, "pass on standard input to the command")
	flags.BoolVarP(&f.tty, "tty", "t", false, "give the command a terminal")
}

// check refuses to pass on through a terminal what does not come from one: it would
// change the bytes.
func (f *terminalFlags) check(stdin any) error {
	if _, ok := terminalOf(stdin); f.interactive && f.tty && !ok {
		return errors.New("standard input is no terminal; leave out --tty to pass it on, or --interactive")
	}
	return nil
}

// execute runs a command in a container with the standard streams of cmd.
func (f *terminalFlags) execute(cmd *cobra.Command, c client, start *runnerv1.ExecStartRequest, interrupts <-chan os.Signal) error {
	// A write to a broken pipe is an error like others.
	signal.Ignore(syscall.SIGPIPE)
	x := &execution{
		client: c, start: start, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), interrupts: interrupts,
		raw: func() (func(), error) { return func() {}, nil }, size: func() *runnerv1.ExecResize { return nil },
	}
	if f.interactive {
		x.stdin = cmd.InOrStdin()
	}
	if f.tty {
		resized := make(chan os.Signal, 1)
		notifyResized(resized)
		defer signal.Stop(resized)
		x.resized, x.size = resized, func() *runnerv1.ExecResize { return terminalSize(cmd.OutOrStdout(), cmd.InOrStdin()) }
	}
	if keyboard, ok := terminalOf(cmd.InOrStdin()); ok && f.tty && f.interactive {
		x.raw = func() (func(), error) { return rawTerminal(keyboard) }
	}
	return x.run(context.WithoutCancel(cmd.Context()))
}

// endSignals are those that ask a command to end.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// notifyInterrupts tells of signals until stop is called.
func notifyInterrupts(signals []os.Signal) (interrupts <-chan os.Signal, stop func()) {
	notified := make(chan os.Signal, 2)
	signal.Notify(notified, signals...)
	return notified, func() { signal.Stop(notified) }
}

// terminalOf returns stream, one of a command's own, if it is a terminal.
func terminalOf(stream any) (*os.File, bool) {
	file, ok := stream.(*os.File)
	return file, ok && term.IsTerminal(descriptor(file))
}

func descriptor(file *os.File) int { return int(file.Fd()) }

// rawTerminal has a terminal pass on every key as it is, also Ctrl-C, until restore
// is called.
func rawTerminal(keyboard *os.File) (restore func(), err error) {
	before, err := term.MakeRaw(descriptor(keyboard))
	if err != nil {
		return func() {}, err
	}
	return func() { _ = term.Restore(descriptor(keyboard), before) }, nil // it may be gone
}

// terminalSize returns the size of the first of streams that is a terminal, nil if
// none is.
func terminalSize(streams ...any) *runnerv1.ExecResize {
	for _, stream := range streams {
		file, ok := terminalOf(stream)
		if !ok {
			continue
		}
		if columns, rows, err := term.GetSize(descriptor(file)); err == nil && columns > 0 && rows > 0 {
			return &runnerv1.ExecResize{Cols: uint32(columns), Rows: uint32(rows)} //nolint:gosec // they are above zero
		}
	}
	return nil
}
