package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// runNetns replaces this process by a command inside the node.
func runNetns(_ context.Context, s settings, args []string) error {
	args = afterDashes(args)
	if len(args) == 0 {
		return errors.New("usage: netns -- COMMAND [ARG...]")
	}
	return enter(s, args)
}

func runCrictl(_ context.Context, s settings, args []string) error {
	return enter(s, append([]string{s.bin("crictl"), "--config", s.etc("crictl.yaml")}, afterDashes(args)...))
}

func runPush(_ context.Context, s settings, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: push TARBALL REFERENCE")
	}
	i, err := running(s)
	if err != nil {
		return err
	}
	push := pushArgs(args[0], args[1], i.Settings.hostMirror())
	if isPrivate(args[1]) {
		return enter(s, append([]string{s.bin("tools")}, push...))
	}
	return quietly(s.bin("tools"), push...)
}

func afterDashes(args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		return args[1:]
	}
	return args
}

// enter joins the node's network, mounts and process numbers and becomes the
// command, in the folder where it was called.
func enter(s settings, args []string) error {
	i, err := running(s)
	if err != nil {
		return err
	}
	if i.Settings.Simulated {
		return errors.New("a simulated cluster has no node to enter")
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	// nsenter has to stay, as the parent of a member of the PID namespace: who
	// kills it means the command
	argv := append([]string{"nsenter", "-t", strconv.Itoa(i.Process.PID), "-m", "-n", "-p", "--",
		"setpriv", "--pdeathsig", "KILL", "env", "-C", dir}, args...)
	if err := syscall.Exec(nsenter, argv, os.Environ()); err != nil {
		return fmt.Errorf("entering the node: %w", err)
	}
	return nil
}
