package main

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// requirement is something of the operating system that the cluster needs.
type requirement struct {
	what    string
	missing func() bool
	debian  []string // packages that bring it
}

func command(name string, debian ...string) requirement {
	return requirement{what: "command " + name, debian: debian, missing: func() bool {
		_, err := exec.LookPath(name)
		return err != nil
	}}
}

// staticBusybox is the machine's busybox, if it runs without libraries: an image
// is made of it and nothing else.
func staticBusybox() requirement {
	return requirement{what: "a static busybox", debian: []string{"busybox-static"}, missing: func() bool {
		path, err := exec.LookPath("busybox")
		if err != nil {
			return true
		}
		f, err := elf.Open(path)
		if err != nil {
			return true
		}
		defer f.Close()
		return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	}}
}

// requirements lists what is missing most often on a small machine; what only
// runc's build needs is left out once runc is there.
func requirements(s settings) []requirement {
	if s.Simulated {
		return nil
	}
	reqs := []requirement{
		command("ip", "iproute2"), command("iptables", "iptables"), command("ipset", "ipset"),
		command("nft", "nftables"), staticBusybox(), command("nsenter", "util-linux"),
	}
	for _, b := range buildSteps(s) {
		if b.cgo && !b.done(s) {
			reqs = append(reqs, command("gcc", "gcc", "libc6-dev"), command("pkg-config", "pkg-config"), requirement{
				what: "header seccomp.h", debian: []string{"libseccomp-dev"},
				missing: func() bool { return exec.Command("pkg-config", "--exists", "libseccomp").Run() != nil },
			})
		}
	}
	return reqs
}

// missing returns what is not there, and the Debian packages that bring it.
func missing(reqs []requirement) (what, packages []string) {
	for _, r := range reqs {
		if r.missing() {
			what = append(what, r.what)
			packages = append(packages, r.debian...)
		}
	}
	return what, packages
}

// aptInstall installs Debian packages and looks whether that was enough.
func aptInstall(ctx context.Context, s settings, packages []string) error {
	logFile, err := os.Create(s.log("apt"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "-y", "--no-install-recommends"}, packages...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Stdout, cmd.Stderr = logFile, logFile
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w; the end of %s:\n%s", strings.Join(args, " "), err, s.log("apt"), tail(s.log("apt"), 20))
		}
	}
	if what, _ := missing(requirements(s)); len(what) > 0 {
		return fmt.Errorf("still missing after apt-get: %s", strings.Join(what, ", "))
	}
	return nil
}
