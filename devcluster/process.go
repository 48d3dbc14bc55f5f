package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// procRoot is where the kernel shows its processes.
const procRoot = "/proc"

// process says which process is meant, beyond its number: numbers are reused,
// and after a crash or a reboot somebody else may have ours.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks between boot and start
	Boot  string `json:"boot"`  // id of that boot
	Arg   string `json:"arg"`   // a word of its command line
}

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	State  byte // R, S, D, Z ...
	Parent int
	Start  uint64
	Pages  int64 // resident
}

func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile(filepath.Join(procRoot, strconv.Itoa(pid), "stat"))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(b))
}

// parseStat reads a line of /proc/PID/stat. The second field, the name, may
// itself contain spaces and parentheses: the rest begins behind the last one.
func parseStat(line string) (procStat, error) {
	i := strings.LastIndexByte(line, ')')
	if i < 0 {
		return procStat{}, fmt.Errorf("stat line without a name: %q", line)
	}
	f := strings.Fields(line[i+1:])
	if len(f) < 22 {
		return procStat{}, fmt.Errorf("stat line with %d fields behind the name", len(f))
	}
	s := procStat{State: f[0][0]}
	var errs [3]error
	s.Parent, errs[0] = strconv.Atoi(f[1])
	s.Start, errs[1] = strconv.ParseUint(f[19], 10, 64)
	s.Pages, errs[2] = strconv.ParseInt(f[21], 10, 64)
	return s, errors.Join(errs[:]...)
}

func readArgs(pid int) []string {
	b, err := os.ReadFile(filepath.Join(procRoot, strconv.Itoa(pid), "cmdline"))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

func bootID() string {
	b, err := os.ReadFile(filepath.Join(procRoot, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// identify describes the running process pid, by a word that its command line has.
func identify(pid int, arg string) (process, error) {
	st, err := readStat(pid)
	if err != nil {
		return process{}, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	return process{PID: pid, Start: st.Start, Boot: bootID(), Arg: arg}, nil
}

// alive tells whether exactly this process still runs. A zombie does not.
func (p process) alive() bool {
	if p.PID <= 0 || p.Boot != bootID() {
		return false
	}
	st, err := readStat(p.PID)
	if err != nil || st.Start != p.Start || st.State == 'Z' || st.State == 'X' {
		return false
	}
	for _, a := range readArgs(p.PID) {
		if a == p.Arg {
			return true
		}
	}
	return false
}

// kill ends the process and waits until it is gone.
func (p process) kill(patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for p.alive() {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending process %d: %w", p.PID, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d still runs %s after SIGKILL", p.PID, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// writePIDFile writes the file at once or not at all.
func writePIDFile(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := os.WriteFile(path+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readPIDFile reports false if there is no such file, or nothing sensible in it.
func readPIDFile(path string, v any) (bool, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return json.Unmarshal(b, v) == nil, nil
}

// child is one process that the node process started.
type child struct {
	Name string // first word of its command line
	PID  int    // as the reader of /proc sees it
	RSS  int64  // bytes
	Age  time.Duration
}

// pids lists the processes that can be seen from here.
func pids() ([]int, error) {
	entries, err := os.ReadDir(procRoot)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out, nil
}

// children lists the living children of a process.
func children(parent int) ([]child, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	uptime := readUptime()
	var out []child
	for _, pid := range all {
		st, err := readStat(pid) // it may have ended meanwhile
		if err != nil || st.Parent != parent || st.State == 'Z' {
			continue
		}
		if args := readArgs(pid); len(args) > 0 {
			// ticks are hundredths of a second on every architecture that Go knows
			age := uptime - time.Duration(st.Start)*10*time.Millisecond
			out = append(out, child{Name: args[0], PID: pid, RSS: st.Pages * int64(os.Getpagesize()), Age: age})
		}
	}
	return out, nil
}

func readUptime() time.Duration {
	b, err := os.ReadFile(filepath.Join(procRoot, "uptime"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
