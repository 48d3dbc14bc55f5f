package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"slices"
	"testing"
)

func TestPushArgs(t *testing.T) {
	tests := []struct{ ref, target string }{
		{"busybox", "m/library/busybox"},
		{"busybox:1", "m/library/busybox:1"},
		{"docker.io/busybox:1", "m/library/busybox:1"},
		{"docker.io/library/busybox:1", "m/library/busybox:1"},
		{"docker:27-dind", "m/library/docker:27-dind"},
		{"team/tool:1", "m/team/tool:1"},
		{"ghcr.io/team/tool:1", "m/team/tool:1"},
		{"devcluster.local/pause:1", "m/pause:1"},
		{"localhost/tool:1", "m/tool:1"},
		{"127.0.0.1:5000/private/busybox:1", "127.0.0.1:5000/private/busybox:1"},
	}
	for _, tt := range tests {
		args := pushArgs("x.tar", tt.ref, "m")
		if got := args[len(args)-1]; got != tt.target {
			t.Errorf("%s: pushed to %s, want %s", tt.ref, got, tt.target)
		}
		if got := slices.Contains(args, "-auth"); got != isPrivate(tt.ref) {
			t.Errorf("%s: with a password: %t", tt.ref, got)
		}
	}
}

func TestBusyboxLayer(t *testing.T) {
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("no busybox here")
	}
	var b bytes.Buffer
	if err := busyboxLayer(&b); err != nil {
		t.Fatal(err)
	}
	found := map[string]*tar.Header{}
	r := tar.NewReader(&b)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
		found[h.Name] = h
	}
	if h := found["bin/sh"]; h == nil || h.Linkname != "busybox" {
		t.Errorf("bin/sh: %+v", h)
	}
	if h := found["tmp/"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("tmp: %+v", h)
	}
	if h := found["bin/busybox"]; h == nil || h.Size == 0 {
		t.Errorf("bin/busybox: %+v", h)
	}
}
