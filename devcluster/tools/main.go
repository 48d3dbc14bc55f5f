// tools holds the small helpers of the cluster that need more than the standard
// library.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	commands := map[string]func(ctx context.Context, args []string) error{
		"registry":    serveRegistry,
		"image":       buildImage,
		"push":        push,
		"provisioner": provision,
		"netpol":      enforcePolicies,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: tools registry|image|push|provisioner|netpol [flags]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
}
