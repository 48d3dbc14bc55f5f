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
	// The signals are never given back: a second one, as supervisors send, must not end a
	// process that ends well.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprint(os.Stderr, report(err))
		os.Exit(exitCode(err))
	}
}
