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
		fmt.Fprint(os.Stderr, report(err))
		os.Exit(exitCode(err)) //nolint:gocritic // the process ends, and with it the signals
	}
}
