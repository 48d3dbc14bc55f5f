package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// kubeletSysctls are what the kubelet insists on. They belong to the whole
// machine, so the node sees files with these words instead (privateSysctls).
func kubeletSysctls() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// privateMounts makes the node's view of the file system: what it mounts is
// invisible outside, /proc shows its own processes, and /run and /var/log,
// where every program has habits of its own, are the node's.
func privateMounts() error {
	for _, m := range []struct {
		what, kind, to string
		flags          uintptr
		options        string
	}{
		{"cutting the mounts off from the host", "", "/", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		// volumes of Pods may ask for mount propagation
		{"sharing mounts within the node", "", "/", syscall.MS_REC | syscall.MS_SHARED, ""},
		{"mounting /run", "tmpfs", "/run", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=755"},
		{"mounting /var/log", "tmpfs", "/var/log", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=755"},
		{"mounting /proc", "proc", "/proc", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC, ""},
	} {
		if err := syscall.Mount("devcluster", m.to, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
	}
	return privateSysctls()
}

// privateSysctls hides the real files behind ordinary ones where the kubelet
// would write a value of its own.
func privateSysctls() error {
	// A user namespace may mount /proc only if a whole one is visible somewhere.
	const whole = "/run/proc"
	if err := os.Mkdir(whole, 0o555); err != nil {
		return err
	}
	if err := syscall.Mount("proc", whole, "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", whole, err)
	}
	for name, want := range kubeletSysctls() {
		file := filepath.Join("/proc/sys", name)
		have, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(have)) == want {
			continue
		}
		fake := filepath.Join("/run/sysctl", name)
		if err := os.MkdirAll(filepath.Dir(fake), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(fake, []byte(want+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(fake, file, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding the sysctl %s: %w", name, err)
		}
	}
	return nil
}
