package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

func runStatus(ctx context.Context, s settings, _ []string) error {
	i, err := running(s)
	if err != nil {
		return err
	}
	kids, err := children(i.Process.PID)
	if err != nil {
		return err
	}
	writeStatus(os.Stdout, *i, kids)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := i.health(ctx); err != nil {
		return fmt.Errorf("the %s cluster is not healthy (`up` begins afresh): %w", i.Settings.mode(), err)
	}
	fmt.Printf("the %s cluster is healthy\n", i.Settings.mode())
	return nil
}

// writeStatus shows each component that there should be, in the order of their
// start, and then how many other processes the node has adopted.
func writeStatus(w io.Writer, i instance, kids []child) {
	fmt.Fprintf(w, "mode        %s\nstate       %s\nKUBECONFIG  %s\nAPI server  https://%s\n", i.Settings.mode(), i.Settings.Dir, i.Settings.kubeconfig(), i.Settings.hostAPI())
	if !i.Settings.Simulated {
		fmt.Fprintf(w, "registry    http://%s\n", i.Settings.hostMirror())
	}
	fmt.Fprintf(w, "node        pid %d\n\n", i.Process.PID)
	kids = slices.Clone(kids)
	slices.SortFunc(kids, func(a, b child) int { return cmp.Compare(a.PID, b.PID) })
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROCESS\tPID\tMEMORY\tUP\tLOG")
	var sum int64
	for _, name := range componentNames(i.Settings) {
		k := slices.IndexFunc(kids, func(c child) bool { return c.Name == name })
		if k < 0 {
			fmt.Fprintf(t, "%s\t-\t-\tnot running\t%s\n", name, i.Settings.log(name))
			continue
		}
		c := kids[k]
		sum += c.RSS
		fmt.Fprintf(t, "%s\t%d\t%d MiB\t%s\t%s\n", name, c.PID, c.RSS>>20, c.Age.Round(time.Second), i.Settings.log(name))
	}
	fmt.Fprintf(t, "in all\t\t%d MiB\t\t\n", sum>>20)
	t.Flush()
}

func runKubeconfig(_ context.Context, s settings, _ []string) error {
	if _, err := os.Stat(s.kubeconfig()); err != nil {
		return errors.New("no cluster has been started; start one with `up`")
	}
	fmt.Println(s.kubeconfig())
	return nil
}
