package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// imageSpec is one image of a fresh cluster.
type imageSpec struct {
	file  string   // tarball in the images folder
	flags []string // of `tools image`
	layer func(io.Writer) error
	refs  []string
}

func baseImages(s settings) []imageSpec {
	return []imageSpec{
		{"pause.tar", []string{"-entrypoint", "/pause", "-user", "65535:65535"},
			func(w io.Writer) error { return pauseLayer(w, s.bin("pause")) },
			[]string{"devcluster.local/pause:1"}},
		{"busybox.tar", []string{"-cmd", "sh"}, busyboxLayer,
			[]string{"busybox:latest"}},
		// One of its own, or the kubelet shows either name for both.
		{"private.tar", []string{"-cmd", "sh", "-env", "REGISTRY=private"}, busyboxLayer,
			[]string{privateAddr + "/private/busybox:latest"}},
		{"nonroot.tar", []string{"-cmd", "sh", "-user", "12345:12345"}, busyboxLayer, []string{"busybox:nonroot"}},
	}
}

// buildImages makes the images of this machine's files: no registry is asked.
func buildImages(s settings) error {
	if err := os.MkdirAll(s.path("images"), 0o755); err != nil {
		return err
	}
	for _, i := range baseImages(s) {
		if err := buildImage(s, i); err != nil {
			return fmt.Errorf("making the image %s: %w", i.file, err)
		}
	}
	return nil
}

func buildImage(s settings, i imageSpec) error {
	layer := s.path("images", i.file+".layer")
	f, err := os.Create(layer)
	if err != nil {
		return err
	}
	defer os.Remove(layer)
	defer f.Close()
	if err := i.layer(f); err != nil {
		return err
	}
	args := []string{"image", "-o", s.path("images", i.file), "-t", i.refs[0], "-layer", layer, "-arch", runtime.GOARCH}
	return quietly(s.bin("tools"), append(args, i.flags...)...)
}

// pushBaseImages must run inside the node's network.
func pushBaseImages(s settings) error {
	if _, err := os.Stat(dindTarball(s)); err == nil {
		if err := quietly(s.bin("tools"), pushArgs(dindTarball(s), dindRef, mirrorAddr)...); err != nil {
			return err
		}
	}
	for _, i := range baseImages(s) {
		for _, ref := range i.refs {
			if err := quietly(s.bin("tools"), pushArgs(s.path("images", i.file), ref, mirrorAddr)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// pushArgs are the words for `tools push`. A reference with the private
// registry's address goes there; everything else goes to the mirror, under the
// path at which containerd will ask for it.
func pushArgs(tarball, ref, mirror string) []string {
	if isPrivate(ref) {
		return []string{"push", "-auth", privateUser + ":" + privatePass, tarball, ref}
	}
	return []string{"push", tarball, mirror + "/" + mirrorPath(ref)}
}

func isPrivate(ref string) bool { return strings.HasPrefix(ref, privateAddr+"/") }

// mirrorPath drops the registry's name from a reference, and adds "library/"
// to the short names of Docker Hub, as every client does.
func mirrorPath(ref string) string {
	first, rest, found := strings.Cut(ref, "/")
	if !found {
		return "library/" + ref
	}
	if strings.ContainsAny(first, ".:") || first == "localhost" {
		if (first == "docker.io" || first == "index.docker.io") && !strings.Contains(rest, "/") {
			return "library/" + rest
		}
		return rest
	}
	return ref
}

func pauseLayer(w io.Writer, pause string) error {
	b, err := os.ReadFile(pause)
	if err != nil {
		return err
	}
	t := &layer{w: tar.NewWriter(w)}
	t.file("pause", 0o755, b)
	return t.close()
}

// busyboxLayer is a small system around the machine's static busybox.
func busyboxLayer(w io.Writer) error {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	busybox, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	list, err := exec.Command(path, "--list").Output()
	if err != nil {
		return fmt.Errorf("asking busybox for its commands: %w", err)
	}
	t := &layer{w: tar.NewWriter(w)}
	for _, dir := range []string{"bin", "dev", "etc", "home", "proc", "root", "sys", "usr", "usr/bin", "var"} {
		t.dir(dir, 0o755)
	}
	t.dir("tmp", 0o1777)
	t.file("bin/busybox", 0o755, busybox)
	for _, name := range strings.Fields(string(list)) {
		if name != "busybox" {
			t.link("bin/"+name, "busybox")
		}
	}
	t.link("usr/bin/env", "/bin/env")
	t.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"))
	t.file("etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n"))
	return t.close()
}

// layer writes a tarball in which everything belongs to root, and remembers
// the first error.
type layer struct {
	w   *tar.Writer
	err error
}

func (l *layer) add(h *tar.Header, content []byte) {
	if l.err != nil {
		return
	}
	h.Size = int64(len(content))
	if l.err = l.w.WriteHeader(h); l.err != nil {
		return
	}
	_, l.err = io.Copy(l.w, bytes.NewReader(content))
}

func (l *layer) dir(name string, mode int64) {
	l.add(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, nil)
}

func (l *layer) file(name string, mode int64, content []byte) {
	l.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, content)
}

func (l *layer) link(name, target string) {
	l.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (l *layer) close() error {
	if l.err != nil {
		return l.err
	}
	return l.w.Close()
}
