package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// makeNetwork fills the node's empty network namespace: a bridge that carries
// the node's address, and no way out.
func makeNetwork() error {
	for _, args := range []string{
		"link set lo up",
		"link add " + bridgeName + " type bridge",
		"addr add " + nodeIP + "/24 dev " + bridgeName,
		"link set " + bridgeName + " up",
		// what the node itself sends to a Service needs a route before kube-proxy's
		// rules may redirect it; everything else that is not here fails at once
		"route add " + serviceCIDR + " dev " + bridgeName + " src " + nodeIP,
		"route add unreachable default metric 4096",
	} {
		if err := quietly("ip", strings.Fields(args)...); err != nil {
			return fmt.Errorf("making the network: %w", err)
		}
	}
	// the kernel may offer the second only after a module is loaded
	if _, err := os.Stat("/proc/sys/net/bridge"); errors.Is(err, fs.ErrNotExist) {
		_ = quietly("modprobe", "br_netfilter") // the check below tells
	}
	for _, name := range []string{"net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"} {
		if err := os.WriteFile("/proc/sys/"+name, []byte("1\n"), 0o644); err != nil {
			return fmt.Errorf("setting the namespace's %s (network policies need it): %w", name, err)
		}
	}
	return nil
}

// quietly runs a short command and shows its output only in the error.
func quietly(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
