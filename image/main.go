// Command image makes the runner's OCI image, and pushes it, without a Docker engine. What
// it makes is a function of the source, the version and the toolchain: two builds are the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"
)

const usage = `usage: image build [-source DIR] [-version V] -o FILE   an OCI archive for amd64 and arm64
       image push [-insecure] FILE REFERENCE          to a registry; the credentials are those of docker login`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "build":
		return runBuild(ctx, args[1:])
	case "push":
		return runPush(ctx, args[1:])
	}
	return errors.New(usage)
}

func runBuild(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	source := flags.String("source", "..", "folder of the runner's module")
	version := flags.String("version", "dev", "version that the binary and the image tell")
	out := flags.String("o", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New(usage)
	}
	created, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	return build(ctx, recipe{source: *source, version: *version, created: created}, *out)
}

// sourceDate is the time that is written into the image: of the source, not of the build.
func sourceDate(seconds string) (time.Time, error) {
	if seconds == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

func runPush(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	insecure := flags.Bool("insecure", false, "speak HTTP to the registry")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return errors.New(usage)
	}
	return push(ctx, flags.Arg(0), flags.Arg(1), *insecure)
}
