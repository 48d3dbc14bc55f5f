package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAbsent(t *testing.T) {
	kids := []child{{Name: "etcd"}, {Name: "/usr/bin/containerd-shim"}, {Name: "kubelet"}}
	got := absent([]string{"etcd", "kube-apiserver", "kubelet", "netpol"}, kids)
	if want := []string{"kube-apiserver", "netpol"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestTeardownAfterACrash leaves a pid file whose number somebody else has now.
func TestTeardownAfterACrash(t *testing.T) {
	s := settings{Dir: t.TempDir()}
	for _, f := range []string{"bin/kube", "log/etcd.log", "data/etcd/db", "etc/pki/ca.crt", "kubeconfig", "run/containerd.sock"} {
		if err := os.MkdirAll(filepath.Dir(s.path(f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, p := sleeper(t)
	stale := p
	stale.Start--
	if err := writePIDFile(s.run("node.json"), instance{Process: stale, Settings: s}); err != nil {
		t.Fatal(err)
	}
	lived, err := teardown(s)
	if err != nil || lived {
		t.Fatalf("lived: %t, %v", lived, err)
	}
	if !p.alive() {
		t.Error("the other process was ended")
	}
	for _, f := range []string{"data", "etc", "kubeconfig", "run"} {
		if _, err := os.Stat(s.path(f)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", f, err)
		}
	}
	for _, f := range []string{"bin/kube", "log/etcd.log"} {
		if _, err := os.Stat(s.path(f)); err != nil {
			t.Errorf("%s should stay: %v", f, err)
		}
	}
}

func TestRemoveStateKeepsStrangers(t *testing.T) {
	s := settings{Dir: filepath.Join(t.TempDir(), "home")}
	stranger := s.path("letter.txt")
	if err := os.MkdirAll(s.path("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stranger, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := removeState(s); err == nil {
		t.Error("no error although something is left")
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(stranger); err != nil {
		t.Fatal(err)
	}
	if err := removeState(s); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there (%v)", err)
	}
}

func TestLockIsForOne(t *testing.T) {
	s := settings{Dir: t.TempDir()}
	first, err := lock(s)
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan struct{})
	go func() {
		defer close(entered)
		second, err := lock(s)
		if err != nil {
			t.Error(err)
			return
		}
		second()
	}()
	select {
	case <-entered:
		t.Error("the second did not wait")
	default:
	}
	first()
	<-entered
}
