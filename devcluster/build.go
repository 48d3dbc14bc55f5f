package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	kubernetesVersion = "1.37.2"
	containerdVersion = "2.4.2"
	runcVersion       = "1.5.3"
	cniVersion        = "1.10.0"
	crictlVersion     = "1.37.0"
	kwokVersion       = "0.8.0"
)

// sourceFS is the module itself: a built orchestrator works without its clone.
//
//go:embed go.mod go.sum kube tools pause
var sourceFS embed.FS

// buildStep makes one or more binaries.
type buildStep struct {
	name    string   // of its log and stamp
	title   string   // for the one who waits
	sources []string // of sourceFS; none for modules that are named with their version
	outputs []string // in the bin folder
	args    []string // of the go command
	gobin   string   // for go install: folder below bin
	cgo     bool
}

func buildSteps(s settings) []buildStep {
	own := func(name, title, ldflags string) buildStep {
		return buildStep{name: name, title: title, sources: []string{"go.mod", "go.sum", name}, outputs: []string{name},
			args: []string{"build", "-trimpath", "-ldflags", "-s -w" + ldflags, "-o", "../bin/" + name, "./" + name}}
	}
	kube := own("kube", "building kube (kubernetes v"+kubernetesVersion+", the long one: 8-15 min when Go's cache is cold)", kubernetesLDFlags())
	steps := []buildStep{kube}
	if s.Simulated {
		return append(steps, install("kwok", "building kwok", "", "sigs.k8s.io/kwok/cmd/kwok@v"+kwokVersion))
	}
	const containerd, cni = "github.com/containerd/containerd/v2", "github.com/containernetworking/plugins/plugins/"
	cniStep := install("cni", "building the network plugins", "",
		cni+"main/bridge@v"+cniVersion, cni+"main/loopback@v"+cniVersion, cni+"ipam/host-local@v"+cniVersion, cni+"meta/portmap@v"+cniVersion)
	cniStep.gobin = "cni"
	runc := install("runc", "building runc (with libseccomp)", " -X main.version="+runcVersion, "-tags=seccomp", "github.com/opencontainers/runc@v"+runcVersion)
	runc.cgo = true
	return append(steps,
		own("tools", "building tools (registry, policies, volumes)", ""),
		own("pause", "building pause", ""),
		install("containerd", "building containerd (2-4 min when the cache is cold)", " -X "+containerd+"/version.Version=v"+containerdVersion,
			containerd+"/cmd/containerd@v"+containerdVersion, containerd+"/cmd/containerd-shim-runc-v2@v"+containerdVersion),
		install("crictl", "building crictl", "", "sigs.k8s.io/cri-tools/cmd/crictl@v"+crictlVersion),
		cniStep, runc)
}

// install builds commands of modules that have no replace lines.
func install(name, title, ldflags string, words ...string) buildStep {
	b := buildStep{name: name, title: title, args: append([]string{"install", "-trimpath", "-ldflags", "-s -w" + ldflags}, words...)}
	for _, w := range words {
		if pkg, _, found := strings.Cut(w, "@"); found {
			b.outputs = append(b.outputs, filepath.Base(pkg))
		}
	}
	return b
}

func kubernetesLDFlags() string {
	const p = " -X k8s.io/component-base/version."
	v := strings.Split(kubernetesVersion, ".")
	return p + "gitVersion=v" + kubernetesVersion + p + "gitMajor=" + v[0] + p + "gitMinor=" + v[1] + p + "gitTreeState=clean"
}

// stamp changes with everything that the binaries are made of.
func (b buildStep) stamp() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %t", b.args, b.gobin, b.cgo)
	for _, root := range b.sources {
		err := fs.WalkDir(sourceFS, root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := sourceFS.ReadFile(path)
			fmt.Fprintf(h, "%q %q", path, content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("reading the sources of %s: %w", b.name, err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// done tells whether the binaries are there and of these sources.
func (b buildStep) done(s settings) bool {
	for _, o := range b.outputs {
		if _, err := os.Stat(s.path("bin", b.gobin, o)); err != nil {
			return false
		}
	}
	want, err := b.stamp()
	have, readErr := os.ReadFile(s.bin(".stamp-" + b.name))
	return err == nil && readErr == nil && string(have) == want
}

func (b buildStep) do(ctx context.Context, s settings) error {
	if err := os.RemoveAll(s.bin(".stamp-" + b.name)); err != nil {
		return err
	}
	if err := writeSources(s.path("src")); err != nil {
		return err
	}
	logFile, err := os.Create(s.log("build-" + b.name))
	if err != nil {
		return err
	}
	defer logFile.Close()
	cgo := "CGO_ENABLED=0"
	if b.cgo {
		cgo = "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", b.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.path("src"), logFile, logFile
	cmd.Env = append(os.Environ(), cgo, "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOBIN="+s.path("bin", b.gobin))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w; the end of %s:\n%s", b.title, err, s.log("build-"+b.name), tail(s.log("build-"+b.name), 20))
	}
	stamp, err := b.stamp()
	if err != nil {
		return err
	}
	return os.WriteFile(s.bin(".stamp-"+b.name), []byte(stamp), 0o644)
}

func writeSources(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the sources of before: %w", err)
	}
	if err := os.CopyFS(dir, sourceFS); err != nil {
		return fmt.Errorf("writing the sources: %w", err)
	}
	return nil
}

// tail returns the last lines of a file, for a message.
func tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}
