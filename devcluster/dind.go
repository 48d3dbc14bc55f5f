package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// dindRef is the name under which Pods ask for Docker in Docker. What they get
// is the engine that Debian packages, whatever its version.
const dindRef = "docker.io/library/docker:27-dind"

func dindTarball(s settings) string { return s.path("images", "dind.tar") }

// runImage makes an image that not every cluster needs. `up` pushes it again as
// long as it is kept.
func runImage(ctx context.Context, s settings, args []string) error {
	if len(args) != 1 || args[0] != "dind" {
		return errors.New("usage: image dind")
	}
	i, err := running(s)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dindTarball(s)); err != nil { // what was made is kept
		if err := makeDind(ctx, s); err != nil {
			return fmt.Errorf("making the image %s: %w", dindRef, err)
		}
	}
	fmt.Println("pushing", dindRef)
	return quietly(s.bin("tools"), pushArgs(dindTarball(s), dindRef, i.Settings.hostMirror())...)
}

func makeDind(ctx context.Context, s settings) error {
	for _, name := range []string{"apt-get", "dpkg", "chroot", "tar"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("it is made of Debian packages: %w", err)
		}
	}
	work, err := os.MkdirTemp(s.path("data"), "dind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	root, debs, layer := filepath.Join(work, "root"), filepath.Join(work, "debs"), filepath.Join(work, "layer.tar")
	fmt.Println("downloading Debian's docker.io and what it needs")
	if err := downloadDebs(ctx, debs); err != nil {
		return err
	}
	fmt.Println("unpacking")
	if err := unpackDebs(debs, root); err != nil {
		return err
	}
	if err := finishDind(root); err != nil {
		return err
	}
	if err := quietly("tar", "-C", root, "--owner=0", "--group=0", "--numeric-owner", "-cf", layer, "."); err != nil {
		return err
	}
	return quietly(s.bin("tools"), "image", "-o", dindTarball(s), "-t", dindRef, "-layer", layer, "-volume", "/var/lib/docker", "-cmd", "dockerd")
}

// downloadDebs fetches packages with all that they depend on: an empty list of
// installed packages makes apt think that this is a new machine.
func downloadDebs(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o755); err != nil {
		return err
	}
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"update"},
		{"-y", "-o", "Dir::State::status=" + status, "-o", "Dir::Cache::archives=" + dir, "-o", "APT::Sandbox::User=root",
			"--no-install-recommends", "--download-only", "install", "docker.io", "busybox-static"},
	} {
		out, err := exec.CommandContext(ctx, "apt-get", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("apt-get %s: %w: %.600s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// needless tells by a package's file whether it is there for installing only.
func needless(file string) bool {
	return slices.ContainsFunc([]string{"perl", "libperl", "debconf", "adduser", "passwd", "libpam", "dpkg", "libdb5", "libgdbm",
		"gcc-", "usrmerge", "libfile", "libtext", "init-system", "libsemanage", "tar_", "sysvinit", "libaudit",
	}, func(prefix string) bool { return strings.HasPrefix(filepath.Base(file), prefix) })
}

func unpackDebs(debs, root string) error {
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	// like on every Debian of today, /bin is /usr/bin, whichever a package names
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(root, "usr", dir), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("usr/"+dir, filepath.Join(root, dir)); err != nil {
			return err
		}
	}
	for _, f := range files {
		if needless(f) {
			continue
		}
		if err := quietly("dpkg", "-x", f, root); err != nil {
			return err
		}
	}
	for _, dir := range []string{"doc", "man", "locale", "lintian", "bash-completion", "zsh", "fish"} {
		if err := os.RemoveAll(filepath.Join(root, "usr/share", dir)); err != nil {
			return err
		}
	}
	return nil
}

// finishDind does what the packages' own scripts would have done.
func finishDind(root string) error {
	for _, dir := range []string{"dev", "etc", "proc", "root", "run", "sys", "tmp", "var/lib/docker"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o777|fs.ModeSticky); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\ndocker:x:999:\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		err := os.Symlink("xtables-nft-multi", filepath.Join(root, "usr/sbin", name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return linkBusybox(root)
}

// linkBusybox adds the commands that no package brought.
func linkBusybox(root string) error {
	const busybox = "/bin/busybox"
	list, err := exec.Command("chroot", root, busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("asking busybox for its commands: %w", err)
	}
	for _, name := range strings.Fields(string(list)) {
		there := func(dir string) bool {
			_, err := os.Lstat(filepath.Join(root, dir, name))
			return err == nil
		}
		if slices.ContainsFunc([]string{"bin", "sbin"}, there) {
			continue
		}
		if err := os.Symlink(busybox, filepath.Join(root, "bin", name)); err != nil {
			return err
		}
	}
	return nil
}
