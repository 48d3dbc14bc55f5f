package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOnlyLoopbackListens looks at the host's network with the eyes of the
// running cluster's processes. It needs a cluster.
func TestOnlyLoopbackListens(t *testing.T) {
	s, err := loadSettings()
	if err != nil {
		t.Fatal(err)
	}
	i, err := running(s)
	if err != nil {
		t.Skip(err)
	}
	hosts := hostListeners(t)
	kids, err := children(i.Process.PID)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, c := range append(kids, child{Name: "node", PID: i.Process.PID}) {
		for _, inode := range sockets(c.PID) {
			addr, ok := hosts[inode]
			if !ok {
				continue
			}
			found++
			t.Logf("%s listens on %s", c.Name, addr)
			if !strings.HasPrefix(addr, "127.0.0.1:") {
				t.Errorf("%s listens on %s", c.Name, addr)
			}
		}
	}
	if found == 0 {
		t.Error("no listener at all: the test does not see what it should")
	}
}

// hostListeners maps the inodes of listening TCP sockets of this network
// namespace to their addresses.
func hostListeners(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue // no IPv6 here
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			const listening = "0A"
			if col := strings.Fields(lines.Text()); len(col) > 9 && col[3] == listening {
				out[col[9]] = address(t, col[1])
			}
		}
	}
	return out
}

// address reads "0100007F:403B"; IPv6 addresses stay as they are.
func address(t *testing.T, s string) string {
	t.Helper()
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host + port)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	if len(b) != 6 {
		return s
	}
	slices.Reverse(b[:4])
	return fmt.Sprintf("%d.%d.%d.%d:%d", b[0], b[1], b[2], b[3], int(b[4])<<8|int(b[5]))
}

func sockets(pid int) []string {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is right
	var out []string
	for _, l := range links {
		target, _ := os.Readlink(l) // it may be closed meanwhile
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			out = append(out, strings.TrimSuffix(inode, "]"))
		}
	}
	return out
}
