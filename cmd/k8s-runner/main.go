// Command k8s-runner starts workloads as Pods: a gRPC service, and its client.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "k8s-runner: "+err.Error())
		os.Exit(1) //nolint:gocritic // the process ends, and with it the signals
	}
}
