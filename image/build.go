package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// repository is the image's name; a pull from elsewhere names another.
	repository = "ghcr.io/agynio/k8s-runner"
	// user is nobody's on the node, and not root.
	user = "65532:65532"
)

// recipe is all that an image is made of.
type recipe struct {
	// source is the folder of the runner's module.
	source  string
	version string
	created time.Time
}

func architectures() []string { return []string{"amd64", "arm64"} }

// build writes the image of r as an OCI archive to path.
func build(ctx context.Context, r recipe, path string) error {
	work, err := os.MkdirTemp("", "k8s-runner-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var index v1.ImageIndex = empty.Index
	index = mutate.IndexMediaType(index, types.OCIImageIndex)
	for _, arch := range architectures() {
		binary := filepath.Join(work, arch)
		if err := compile(ctx, r, arch, binary); err != nil {
			return err
		}
		image, err := assemble(r, arch, binary)
		if err != nil {
			return fmt.Errorf("making the image for %s: %w", arch, err)
		}
		platform := &v1.Platform{OS: "linux", Architecture: arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return writeArchive(r, index, path)
}

// compile builds the runner for one architecture, static and without a word of this machine.
func compile(ctx context.Context, r recipe, arch, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", out, "./cmd/k8s-runner")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the runner for %s: %w\n%s", arch, err, text)
	}
	return nil
}

func assemble(r recipe, arch, binary string) (v1.Image, error) {
	layer, err := newLayer(r, binary)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "image build"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: r.created}
	file.Config = v1.Config{
		User: user, Entrypoint: []string{"/" + binaryPath}, Cmd: []string{"serve"}, WorkingDir: "/",
		Env:          []string{"PATH=/usr/local/bin", "HOME=/"},
		ExposedPorts: map[string]struct{}{"50051/tcp": {}, "9090/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "k8s-runner",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.source":   "https://github.com/agynio/k8s-runner",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, file)
}
