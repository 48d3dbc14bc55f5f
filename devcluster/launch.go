package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// listenOnHost takes the only ports that the host sees. The simulated API server
// opens its port itself; here it is only found out whether it is free.
func listenOnHost(s settings) ([]*os.File, error) {
	var files []*os.File
	for _, l := range []struct{ addr, variable string }{
		{s.hostAPI(), "DEVCLUSTER_API_PORT"}, {s.hostMirror(), "DEVCLUSTER_MIRROR_PORT"},
	} {
		listener, err := net.Listen("tcp", l.addr)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("somebody else has the port that this cluster wants, choose another with %s: %w", l.variable, err)
		}
		if s.Simulated {
			listener.Close()
			break
		}
		f, err := listener.(*net.TCPListener).File()
		listener.Close() // the file is another handle of the same socket
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// startCluster starts the node process and follows its reports until it is ready.
func startCluster(ctx context.Context, s settings, p *progress, listeners []*os.File) error {
	reports, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reports.Close()
	logFile, err := os.Create(s.log("node"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := &exec.Cmd{Path: s.bin("devcluster"), Args: nodeArgs(s), Dir: "/",
		Stdout: logFile, Stderr: logFile, ExtraFiles: append([]*os.File{theirs}, listeners...),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}} // ^C is not for the node
	if !s.Simulated {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the node process: %w", err)
	}
	theirs.Close()
	// from here on an interrupted `up` leaves a node that the next command finds
	self, err := identify(cmd.Process.Pid, s.Dir)
	if err != nil {
		return err
	}
	if err := writePIDFile(s.run("node.json"), instance{Process: self, Settings: s, Restarts: true}); err != nil {
		return fmt.Errorf("writing down the node process %d: %w", self.PID, err)
	}
	if err := json.NewEncoder(stdin).Encode(s); err != nil {
		return fmt.Errorf("giving the node its settings: %w", err)
	}
	stdin.Close()
	stopWatch := context.AfterFunc(ctx, func() { reports.Close() })
	defer stopWatch()
	if err := follow(reports, s, p); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

// follow shows the node's phases until one report ends them.
func follow(reports io.Reader, s settings, p *progress) error {
	lines := bufio.NewScanner(reports)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading the node's report: %w", err)
		}
		switch {
		case r.Ready:
			return nil
		case r.Error != "":
			return errors.New(r.Error)
		default:
			p.step(phases(s)[r.Phase-1].title)
		}
	}
	return fmt.Errorf("the node process ended without a word; the end of %s:\n%s", s.log("node"), tail(s.log("node"), 15))
}
