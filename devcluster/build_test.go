package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsAgreeWithTheModule(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "k8s.io/kubernetes v"+kubernetesVersion+"\n") {
		t.Errorf("go.mod does not require kubernetes %s", kubernetesVersion)
	}
}

func TestStamp(t *testing.T) {
	steps := buildSteps(settings{Dir: "/a"})
	seen := map[string]string{}
	for _, b := range steps {
		stamp, err := b.stamp()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[stamp]; ok {
			t.Errorf("%s and %s have the same stamp", b.name, other)
		}
		seen[stamp] = b.name
	}
	for _, b := range buildSteps(settings{Dir: "/b"}) {
		if stamp, err := b.stamp(); err != nil || seen[stamp] != b.name {
			t.Errorf("%s would be built anew in another place (%v)", b.name, err)
		}
	}
	changed := steps[0]
	changed.args = append(changed.args, "-x")
	if stamp, _ := changed.stamp(); seen[stamp] != "" {
		t.Error("other arguments, same stamp")
	}
}

func TestDone(t *testing.T) {
	s := settings{Dir: t.TempDir()}
	b := install("tool", "building a tool", "", "example.com/cmd/tool@v1.0.0")
	stamp, err := b.stamp()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(s.path("bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.path("bin"), name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(".stamp-tool", stamp)
	if b.done(s) {
		t.Error("done without the binary")
	}
	write("tool", "")
	if !b.done(s) {
		t.Error("not done with binary and stamp")
	}
	write(".stamp-tool", "of before")
	if b.done(s) {
		t.Error("done with a stamp of before")
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("1\n2\n3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := tail(path, 2), "    2\n    3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := tail(path, 20), "    1\n    2\n    3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
