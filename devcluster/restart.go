package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"syscall"
	"time"
)

// What the node process does when it is told so: only it can start a component
// that ends with it. One of an earlier version would end of these signals.
const (
	signalStopAPI  = syscall.SIGUSR1
	signalStartAPI = syscall.SIGUSR2
)

// graceAPI is how long the API server has to end: it waits a minute for the
// connections that it has, and a cluster's upgrade does not.
const graceAPI = 5 * time.Second

// runRestartAPI ends the API server as an upgrade of a cluster does, and has it
// start again a while later.
func runRestartAPI(ctx context.Context, s settings, args []string) error {
	flags := flag.NewFlagSet("restart-api", flag.ContinueOnError)
	down := flags.Duration("down", 0, "how long it stays away")
	check := flags.Bool("check", false, "only say whether it can be done")
	if err := flags.Parse(args); err != nil {
		return err
	}
	i, err := running(s)
	if err != nil {
		return err
	}
	if !i.Restarts {
		return errors.New("an earlier version of this command started the cluster, whose API server cannot be restarted; `down`, then `up`")
	}
	if *check {
		return nil
	}
	unlock, err := lock(s)
	if err != nil {
		return err
	}
	defer unlock()
	return i.restartAPI(ctx, *down)
}

func (i *instance) restartAPI(ctx context.Context, down time.Duration) error {
	if err := i.tell(signalStopAPI); err != nil {
		return err
	}
	err := i.awaitAPI(ctx, false, graceAPI)
	if errors.Is(err, errLate) {
		if err := i.tell(signalStopAPI); err != nil {
			return err
		}
		err = i.awaitAPI(ctx, false, graceAPI)
	}
	if err == nil {
		fmt.Println("the API server is away")
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(down):
		}
	}
	// also when this command is interrupted: a cluster is left as it was
	if startErr := i.tell(signalStartAPI); err != nil || startErr != nil {
		return errors.Join(err, startErr)
	}
	if err := i.awaitAPI(ctx, true, time.Minute); err != nil {
		return err
	}
	fmt.Println("the API server is back")
	return nil
}

func (i *instance) tell(what syscall.Signal) error {
	if !i.Process.alive() {
		return errors.New("the cluster has ended")
	}
	if err := syscall.Kill(i.Process.PID, what); err != nil {
		return fmt.Errorf("telling the node process %d: %w", i.Process.PID, err)
	}
	return nil
}

var errLate = errors.New("it takes longer")

// awaitAPI waits until the API server answers, or its process has ended.
func (i *instance) awaitAPI(ctx context.Context, there bool, patience time.Duration) error {
	a, err := newAPI(i.Settings, i.Settings.hostAPI())
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; {
		kids, err := children(i.Process.PID)
		if err != nil {
			return err
		}
		runs := slices.ContainsFunc(kids, func(c child) bool { return c.Name == apiServerName })
		if !there && !runs || there && runs && a.ready(ctx) == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting %s for the API server (see %s): %w", patience, i.Settings.log(apiServerName), errLate)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// obey does what the node process was told. Told twice to end the API server, it
// waits for it no more.
func (n *node) obey(what os.Signal) {
	pid, runs := n.pids[apiServerName]
	switch {
	case what == signalStopAPI && runs:
		signal := syscall.SIGTERM
		if n.apiEnds {
			signal = syscall.SIGKILL
		}
		n.apiEnds = true
		if err := syscall.Kill(pid, signal); err != nil {
			log.Printf("ending %s: %v", apiServerName, err)
		}
	case what == signalStartAPI && !runs:
		n.apiEnds = false
		if err := n.start(apiServer(n.settings)); err != nil {
			log.Printf("starting %s again: %v", apiServerName, err)
		}
	}
}
