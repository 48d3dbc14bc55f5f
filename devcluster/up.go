package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

func runUp(ctx context.Context, s settings, args []string) error {
	fs := flag.NewFlagSet("up", flag.ContinueOnError)
	fs.BoolVar(&s.Simulated, "simulated", false, "control plane and kwok's simulated node only; needs no root")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if !s.Simulated && os.Geteuid() != 0 {
		return errors.New("a real node needs root (namespaces, mounts, cgroups); without it there is `up --simulated`: a real API server with a simulated node, where Pods only pretend to run")
	}
	began := time.Now()
	unlock, err := lock(s)
	if err != nil {
		return err
	}
	defer unlock()
	done, err := alreadyUp(ctx, s, began)
	if done || err != nil {
		return err
	}
	if _, err := teardown(s); err != nil {
		return fmt.Errorf("clearing away what was left: %w", err)
	}
	return beginAfresh(ctx, s)
}

// alreadyUp reports a healthy cluster, so that there is nothing to do.
func alreadyUp(ctx context.Context, s settings, began time.Time) (bool, error) {
	i, err := findInstance(s)
	if err != nil || i == nil {
		return false, err
	}
	if i.Process.alive() && i.Settings.Simulated != s.Simulated {
		return false, fmt.Errorf("a %s cluster runs in %s; end it with `down` first, or set DEVCLUSTER_DIR", i.Settings.mode(), s.Dir)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := i.health(ctx); err != nil {
		fmt.Printf("there was a %s cluster, but %v: beginning afresh\n", i.Settings.mode(), err)
		return false, nil
	}
	if err := installSelf(s); err != nil { // this program may be newer
		return false, err
	}
	fmt.Printf("the %s cluster is up and healthy (looked for %s)\n", i.Settings.mode(), elapsed(time.Since(began)))
	printUse(i.Settings)
	return true, nil
}

// beginAfresh builds what is not built and starts a cluster on an empty place.
func beginAfresh(ctx context.Context, s settings) error {
	if err := os.RemoveAll(s.path("log")); err != nil { // of the cluster before
		return err
	}
	for _, dir := range []string{"bin/cni", "log", "run", "data/blobs", "data/pv", "data/podlogs", "etc"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			return err
		}
	}
	// before the long build: taken ports would be bad news after it
	listeners, err := listenOnHost(s)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	p, err := build(ctx, s)
	if err != nil {
		return err
	}
	defer p.halt()
	if err := startCluster(ctx, s, p, listeners); err != nil {
		p.halt()
		if _, cleanErr := teardown(s); cleanErr != nil {
			return errors.Join(err, fmt.Errorf("clearing away: %w", cleanErr))
		}
		return err
	}
	p.finish()
	p.table()
	printUse(s)
	return nil
}

// build makes binaries, images, certificates and config files.
func build(ctx context.Context, s settings) (*progress, error) {
	_, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("the cluster is built from Go modules: %w", err)
	}
	var todo []buildStep
	for _, b := range buildSteps(s) {
		if !b.done(s) {
			todo = append(todo, b)
		}
	}
	what, packages := missing(requirements(s))
	total := len(todo) + 1 + len(phases(s))
	if len(packages) > 0 {
		total++
	}
	p := newProgress(os.Stdout, total)
	defer p.halt()
	if len(packages) > 0 {
		if _, err := exec.LookPath("apt-get"); err != nil {
			return nil, fmt.Errorf("missing here: %s; install what Debian has in: %s", strings.Join(what, ", "), strings.Join(packages, " "))
		}
		p.step("apt-get install " + strings.Join(packages, " "))
		if err := aptInstall(ctx, s, packages); err != nil {
			return nil, err
		}
	}
	for _, b := range todo {
		p.step(b.title)
		if err := b.do(ctx, s); err != nil {
			return nil, err
		}
	}
	p.step("writing certificates, config files and images")
	for _, f := range []func(settings) error{installSelf, writePKI, writeConfig} {
		if err := f(s); err != nil {
			return nil, err
		}
	}
	if s.Simulated {
		err = writeKwokStages(ctx, s)
	} else {
		err = buildImages(s)
	}
	if err != nil {
		return nil, err
	}
	p.finish()
	return p, nil
}

// installSelf copies the running program to the bin folder: the file that `go
// run` made is gone when it returns.
func installSelf(s settings) error {
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	// a running program may be replaced, not written to
	if err := os.WriteFile(s.bin("devcluster.new"), b, 0o755); err != nil {
		return err
	}
	return os.Rename(s.bin("devcluster.new"), s.bin("devcluster"))
}

func printUse(s settings) {
	fmt.Printf("\n  export KUBECONFIG=%s\n", s.kubeconfig())
	if s.Simulated {
		fmt.Println("\nThis is the simulated mode: the API server is real, Pods only pretend to run. No logs, exec or volumes.")
		return
	}
	fmt.Printf("\nImages: push a tarball with `devcluster push`, or to the registry at %s; public names are looked up there.\n"+
		"This command for scripts: %s (status, down, crictl, netns, ... see help).\n", s.hostMirror(), s.bin("devcluster"))
}
