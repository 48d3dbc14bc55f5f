package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"time"
)

func runDown(_ context.Context, s settings, args []string) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	purge := flags.Bool("purge", false, "remove binaries, images and logs too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := os.Stat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("nothing runs: there is no %s\n", s.Dir)
		return nil
	}
	unlock, err := lock(s)
	if err != nil {
		return err
	}
	defer unlock()
	began := time.Now()
	lived, err := teardown(s)
	if err != nil {
		return err
	}
	if lived {
		fmt.Printf("the cluster is down, its data is removed (%s)\n", elapsed(time.Since(began)))
	} else {
		fmt.Printf("nothing runs in %s\n", s.Dir)
	}
	if *purge {
		return removeState(s)
	}
	return nil
}

// removeState removes what is known to be a cluster's, so that a wrong
// DEVCLUSTER_DIR does not cost anybody a home directory.
func removeState(s settings) error {
	for _, name := range []string{"bin", "images", "log", "lock"} {
		if err := os.RemoveAll(s.path(name)); err != nil {
			return fmt.Errorf("removing the state directory: %w", err)
		}
	}
	if err := os.Remove(s.Dir); err != nil {
		return fmt.Errorf("removing the state directory (is something in it that is not the cluster's?): %w", err)
	}
	fmt.Printf("removed %s\n", s.Dir)
	return nil
}
