package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Files that the node process inherits from `up`.
const (
	fdReport = 3 + iota
	fdListenAPI
	fdListenMirror
)

// phase is a part of the node's start, with a name for the one who waits.
type phase struct {
	title string
	do    func(context.Context, *node) error
}

// phases is read on both sides: by the node to do them, by `up` to show them.
func phases(s settings) []phase {
	if s.Simulated {
		return []phase{
			{"starting etcd and the API server (simulated)", startControlPlane},
			{"starting controllers and kwok, waiting for the simulated node", startSimulatedNode},
		}
	}
	return []phase{
		{"making the node's namespaces and network", prepareNode},
		{"starting etcd, the API server, containerd, the registries", startControlPlane},
		{"starting the kubelet, waiting for the node to be Ready", startNode},
	}
}

// report is one line that the node process writes to `up`.
type report struct {
	Phase int    `json:"phase,omitempty"` // this one begins (from 1)
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"`
}

// node is the process that holds the cluster: the first one of the node's PID
// namespace and the parent of all components. When it ends, they all end.
type node struct {
	settings
	pids map[string]int // of components
	// apiEnds is true from when the API server is told to end until it is started again.
	apiEnds bool
}

// runNode starts the cluster and stays. Its settings come through stdin after
// `up` has written down who it is; without them it must not start anything.
func runNode(ctx context.Context, _ settings, _ []string) error {
	// children are tied to the thread that starts them (see start)
	runtime.LockOSThread()
	for fd := fdReport; fd <= fdListenMirror; fd++ {
		syscall.CloseOnExec(fd) // not for the components
	}
	n := &node{pids: map[string]int{}}
	if err := json.NewDecoder(os.Stdin).Decode(&n.settings); err != nil {
		return fmt.Errorf("reading the settings: %w", err)
	}
	out := json.NewEncoder(os.NewFile(fdReport, "report"))
	for i, p := range phases(n.settings) {
		tell(out, report{Phase: i + 1})
		if err := p.do(ctx, n); err != nil {
			tell(out, report{Error: err.Error()})
			return err
		}
	}
	tell(out, report{Ready: true})
	n.reap(ctx)
	return nil
}

// tell reports to `up`, which may have been interrupted: then the node goes on,
// and the next `up` finds out what became of it.
func tell(out *json.Encoder, r report) {
	if err := out.Encode(r); err != nil {
		log.Printf("reporting %+v: %v", r, err)
	}
}

// start runs a component in the background.
func (n *node) start(c component, inherited ...*os.File) error {
	logFile, err := os.OpenFile(n.log(c.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", c.name, err)
	}
	defer logFile.Close()
	cmd := &exec.Cmd{
		Path: n.bin(c.bin), Args: append([]string{c.name}, c.args...), Dir: "/",
		// nothing of the caller's environment: a proxy, for one, would be used
		Env:    []string{"PATH=" + n.path("bin") + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
		Stdout: logFile, Stderr: logFile, ExtraFiles: inherited,
		// in the simulated mode there is no PID namespace that would end it
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}
	n.pids[c.name] = cmd.Process.Pid
	return nil
}

func (n *node) startAll(components ...component) error {
	for _, c := range components {
		if err := n.start(c); err != nil {
			return err
		}
	}
	return nil
}

// wait tries until condition holds, as long as the component lives that has to
// fulfil it.
func (n *node) wait(ctx context.Context, name string, patience time.Duration, condition func(context.Context) error) error {
	deadline := time.Now().Add(patience)
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		st, statErr := readStat(n.pids[name])
		if statErr != nil || st.State == 'Z' {
			return fmt.Errorf("%s ended; the end of its log %s:\n%s", name, n.log(name), tail(n.log(name), 15))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting %s for %s: %w; the end of its log %s:\n%s", patience, name, err, n.log(name), tail(n.log(name), 15))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// reap collects ended children, adopted ones too (the first process of a PID
// namespace inherits all orphans), and writes down which components they were.
// It does what the node is told, and returns when that is to end.
func (n *node) reap(ctx context.Context) {
	ended, told := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	signal.Notify(told, signalStopAPI, signalStartAPI)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if pid <= 0 {
			select {
			case <-ended:
				continue
			case what := <-told:
				n.obey(what)
				continue
			case <-ctx.Done():
				return
			}
		}
		for name, p := range n.pids {
			if p == pid {
				log.Printf("%s ended: exit code %d, signal %v", name, status.ExitStatus(), status.Signal())
				delete(n.pids, name)
			}
		}
	}
}
