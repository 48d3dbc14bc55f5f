// Command gateway is a platform's gateway for a demonstration: it takes one runner and
// prints what that tells it, a line each.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/agynio/k8s-runner/e2e/gateway"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run serves until it is interrupted. The token is in the environment, as a runner's.
func run() error {
	address := flag.String("address", "127.0.0.1:0", "`HOST:PORT` to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	g := gateway.New(os.Getenv("SERVICE_TOKEN"))
	g.Note = func(message any) { fmt.Println(describe(message)) }
	at, err := g.Start(ctx, *address)
	if err != nil {
		return err
	}
	fmt.Println("serving on", at)
	<-ctx.Done()
	g.Stop()
	return nil
}

func describe(message any) string {
	switch m := message.(type) {
	case *runnersv1.ReportRunnerCatalogRequest:
		return fmt.Sprintf("catalog of runner %s: flavors: %d, storage classes: %d, capabilities: %s",
			m.GetRunnerId(), len(m.GetFlavors()), len(m.GetStorageClasses()), strings.Join(m.GetCapabilities(), ", "))
	case *runnersv1.ReportWorkloadStateRequest:
		line := fmt.Sprintf("%s workload %.6s %s:", m.GetObservedAt().AsTime().Format("15:04:05.000"), m.GetWorkloadId(),
			strings.TrimPrefix(m.GetStatus().String(), "WORKLOAD_STATUS_"))
		for _, c := range m.GetContainers() {
			line += " " + c.GetName() + " " + strings.ToLower(strings.TrimPrefix(c.GetStatus().String(), "CONTAINER_STATUS_"))
			if c.GetReason() != "" {
				line += " (" + c.GetReason() + ")"
			}
		}
		return line
	}
	return "a runner is enrolled"
}
