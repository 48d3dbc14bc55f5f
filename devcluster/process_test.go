package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	tests := []struct {
		name string
		line string
		want procStat
		bad  bool
	}{
		{
			name: "plain",
			line: "42 (kube) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 9 0 12345 1000000 77 18446744073709551615",
			want: procStat{State: 'S', Parent: 7, Start: 12345, Pages: 77},
		},
		{
			name: "a name made to confuse",
			line: "42 (a) Z 1 (b) R 8 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 9 0 99 1000000 5 0",
			want: procStat{State: 'R', Parent: 8, Start: 99, Pages: 5},
		},
		{name: "no name", line: "42 S 7", bad: true},
		{name: "short", line: "42 (kube) S 7 42", bad: true},
		{name: "not a number", line: "42 (kube) S x 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 9 0 12345 1000000 77 0", bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat(tt.line)
			if (err != nil) != tt.bad {
				t.Fatalf("error %v, want one: %t", err, tt.bad)
			}
			if !tt.bad && got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// sleeper starts a process that is ended with the test.
func sleeper(t *testing.T) (*exec.Cmd, process) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := identify(cmd.Process.Pid, "1000")
	if err != nil {
		t.Fatal(err)
	}
	return cmd, p
}

func TestAliveIsOneProcessOnly(t *testing.T) {
	_, p := sleeper(t)
	if !p.alive() {
		t.Fatal("a running process does not count as alive")
	}
	others := map[string]func(process) process{
		"same number, started at another time": func(p process) process { p.Start++; return p },
		"written down before a reboot":         func(p process) process { p.Boot = "another"; return p },
		"another program":                      func(p process) process { p.Arg = "node"; return p },
		"nothing written down":                 func(process) process { return process{} },
	}
	for name, change := range others {
		t.Run(name, func(t *testing.T) {
			o := change(p)
			if o.alive() {
				t.Fatal("counts as alive")
			}
			if err := o.kill(time.Second); err != nil {
				t.Fatal(err)
			}
			if !p.alive() {
				t.Error("the running process was ended")
			}
		})
	}
}

func TestKillWaitsForTheEnd(t *testing.T) {
	_, p := sleeper(t) // nobody collects it: a zombie has ended too
	if err := p.kill(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if p.alive() {
		t.Error("alive after kill")
	}
}

func TestChildren(t *testing.T) {
	cmd, p := sleeper(t)
	find := func() (child, bool) {
		t.Helper()
		kids, err := children(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(kids, func(c child) bool { return c.PID == cmd.Process.Pid })
		if i < 0 {
			return child{}, false
		}
		return kids[i], true
	}
	c, ok := find()
	if !ok || c.Name != "sleep" || c.RSS <= 0 || c.Age < 0 || c.Age > time.Minute {
		t.Errorf("got %+v, %t", c, ok)
	}
	if err := p.kill(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if c, ok := find(); ok {
		t.Errorf("an ended child is listed: %+v", c)
	}
}

func TestPIDFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.json")
	var got instance
	if ok, err := readPIDFile(path, &got); ok || err != nil {
		t.Fatalf("no file: %t, %v", ok, err)
	}
	want := instance{Process: process{PID: 1, Start: 2, Boot: "b", Arg: "a"}, Settings: settings{Dir: "/x", APIPort: 3}}
	if err := writePIDFile(path, want); err != nil {
		t.Fatal(err)
	}
	if ok, err := readPIDFile(path, &got); !ok || err != nil || got != want {
		t.Fatalf("got %+v, %t, %v", got, ok, err)
	}
	if err := os.WriteFile(path, []byte(`{"pid`), 0o644); err != nil {
		t.Fatal(err)
	}
	if ok, err := readPIDFile(path, &got); ok || err != nil {
		t.Fatalf("half a file: %t, %v", ok, err)
	}
}
