package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// instance is what is written down about a started cluster.
type instance struct {
	Process  process  `json:"process"`  // the node process, parent of all others
	Settings settings `json:"settings"` // as they were when it was started
	Restarts bool     `json:"restarts"` // the node process can restart the API server
}

// findInstance reads what was written down. Nil means that nothing was; the
// process may have ended since.
func findInstance(s settings) (*instance, error) {
	var i instance
	ok, err := readPIDFile(s.run("node.json"), &i)
	if err != nil {
		return nil, fmt.Errorf("reading who runs: %w", err)
	}
	if !ok {
		return nil, nil
	}
	return &i, nil
}

// running is findInstance for commands that need a living cluster.
func running(s settings) (*instance, error) {
	i, err := findInstance(s)
	if err != nil {
		return nil, err
	}
	if i == nil || !i.Process.alive() {
		return nil, fmt.Errorf("no cluster runs in %s; start one with `up`", s.Dir)
	}
	return i, nil
}

// health returns nil if the cluster is whole: every process is there, the API
// server answers and the node is Ready.
func (i *instance) health(ctx context.Context) error {
	if !i.Process.alive() {
		return errors.New("its node process has ended")
	}
	kids, err := children(i.Process.PID)
	if err != nil {
		return err
	}
	if gone := absent(componentNames(i.Settings), kids); len(gone) > 0 {
		return fmt.Errorf("not running: %s", strings.Join(gone, ", "))
	}
	// the port is known to be ours only now
	a, err := newAPI(i.Settings, i.Settings.hostAPI())
	if err != nil {
		return err
	}
	if err := a.ready(ctx); err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	return a.nodeReady(ctx)
}

// absent lists the names that no child has.
func absent(names []string, kids []child) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(kids, func(c child) bool { return c.Name == name })
	})
}

// nodeArgs is the command line of the node process.
func nodeArgs(s settings) []string { return []string{"devcluster", "node", s.Dir} }

// strayNodes finds node processes of this state directory that may not be written
// down, because somebody removed the files of a running cluster.
func strayNodes(s settings) ([]process, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	var out []process
	for _, pid := range all {
		exe, err := os.Readlink(fmt.Sprintf("%s/%d/exe", procRoot, pid))
		if err != nil || strings.TrimSuffix(exe, " (deleted)") != s.bin("devcluster") || !slices.Equal(readArgs(pid), nodeArgs(s)) {
			continue
		}
		if p, err := identify(pid, s.Dir); err == nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// teardown ends what runs and removes the cluster's data; binaries stay. It is
// right in every state that a crash may leave: a process that is not the one
// written down is not touched, and no mount, address or rule outlives the
// node's namespaces. It reports whether there was a living cluster.
func teardown(s settings) (bool, error) {
	i, err := findInstance(s)
	if err != nil {
		return false, err
	}
	nodes, err := strayNodes(s)
	if err != nil {
		return false, err
	}
	if i != nil {
		nodes = append(nodes, i.Process)
	}
	lived := slices.ContainsFunc(nodes, process.alive)
	for _, n := range nodes {
		// the kernel ends everything else in the PID namespace with it, and the
		// process counts as alive until that is done
		if err := n.kill(10 * time.Second); err != nil {
			return true, err
		}
	}
	if err := removeCgroups(s.cgroupName(), 5*time.Second); err != nil {
		return lived, err
	}
	for _, name := range []string{"data", "etc", "run", "src", "kubeconfig"} {
		if err := os.RemoveAll(s.path(name)); err != nil {
			return lived, fmt.Errorf("removing the data of the cluster: %w", err)
		}
	}
	return lived, nil
}
