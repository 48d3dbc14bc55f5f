package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const cgroupMount = "/sys/fs/cgroup"

// cgroupName is the group that holds the Pods. It is the only name of a
// cluster that the whole machine sees, so it is made of the state directory.
func (s settings) cgroupName() string {
	sum := sha256.Sum256([]byte(s.Dir))
	return fmt.Sprintf("devcluster-%x", sum[:4])
}

// cgroupHierarchies lists the mounted hierarchies: the one of cgroup v2, or each
// controller's of v1.
func cgroupHierarchies() ([]string, error) {
	if isCgroup(cgroupMount) {
		return []string{cgroupMount}, nil
	}
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(cgroupMount, e.Name())
		if e.IsDir() && isCgroup(dir) { // links like cpu -> cpu,cpuacct are left out
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

func isCgroup(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.procs"))
	return err == nil
}

// makeCgroups creates the group in every hierarchy: the kubelet wants to find
// its root.
func makeCgroups(name string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		dir := filepath.Join(h, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating the cgroup: %w", err)
		}
		if h == cgroupMount {
			if err := enableControllers(h, dir); err != nil {
				return err
			}
		}
		// v1 gives a new cpuset no CPU at all
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			b, err := os.ReadFile(filepath.Join(h, f))
			if err != nil || h == cgroupMount {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, f), b, 0o644); err != nil {
				return fmt.Errorf("filling %s of the cgroup: %w", f, err)
			}
		}
	}
	return nil
}

// enableControllers passes the v2 controllers down from the root to the children
// of dir.
func enableControllers(root, dir string) error {
	for _, controller := range []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"} {
		for _, d := range []string{root, dir} {
			err := os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
			if err != nil && (controller == "cpu" || controller == "memory" || controller == "pids") {
				return fmt.Errorf("enabling the cgroup controller %s: %w", controller, err)
			}
		}
	}
	return nil
}

// removeCgroups removes the group everywhere. The kernel needs a moment to
// forget processes that were killed just before.
func removeCgroups(name string, patience time.Duration) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return nil // no cgroups here, so none of ours
	}
	deadline := time.Now().Add(patience)
	for _, h := range hierarchies {
		for {
			err := removeGroup(filepath.Join(h, name))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("removing the cgroup: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// removeGroup removes a group after the groups in it.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
