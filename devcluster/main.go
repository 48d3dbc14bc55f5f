// devcluster runs a single-node Kubernetes for development and tests, built from
// Go modules, in namespaces of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

type subcommand func(ctx context.Context, s settings, args []string) error

func subcommands() map[string]subcommand {
	return map[string]subcommand{
		"up":          runUp,
		"down":        runDown,
		"status":      runStatus,
		"restart-api": runRestartAPI,
		"kubeconfig":  runKubeconfig,
		"push":        runPush,
		"image":       runImage,
		"netns":       runNetns,
		"crictl":      runCrictl,
		// started by `up` only
		"node":    runNode,
		"forward": runForward,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\ndevcluster: interrupted")
		os.Exit(130)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Print(usage)
		return nil
	}
	cmd, ok := subcommands()[args[0]]
	if !ok {
		return fmt.Errorf("no command %q; see `help`", args[0])
	}
	// Pods run as other users, whatever the caller hides from those
	syscall.Umask(0o022)
	// where iptables and the like are, which not everybody's PATH has
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		return err
	}
	s, err := loadSettings()
	if err != nil {
		return err
	}
	return cmd(ctx, s, args[1:])
}
