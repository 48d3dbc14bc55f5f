package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// sizeLimit bounds what a node pulls.
const sizeLimit = 60 << 20

// TestBuild: the image is small, runs as nobody, tells its version, and is the same bytes
// when it is built from another folder.
func TestBuild(t *testing.T) {
	r := recipe{source: "..", version: "1.2.3-test", created: time.Unix(1700000000, 0).UTC()}
	first := filepath.Join(t.TempDir(), "first.tar")
	if err := build(t.Context(), r, first); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "second.tar")
	r.source = copySource(t) // other times, other paths
	if err := build(t.Context(), r, second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, first), read(t, second)) {
		t.Error("two builds differ")
	}
	index, err := openArchive(first, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, index)
	checkPush(t, first, index)
}

func checkIndex(t *testing.T, index v1.ImageIndex) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, d.Platform.Architecture)
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("it is for %s", got)
	}
}

func checkImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != arch || config.Created.Unix() != 1700000000 {
		t.Errorf("the config for %s is %+v", arch, config)
	}
	content := mutate.Extract(image)
	defer content.Close()
	unpacked, files := int64(0), map[string][]byte{}
	for in := tar.NewReader(content); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode&0o022 != 0 || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("others than root may write %s: %o of %d:%d", h.Name, h.Mode, h.Uid, h.Gid)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		unpacked += h.Size
		if files[h.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
	if pulled := pulledSize(t, image); pulled > sizeLimit {
		t.Errorf("the image for %s has %d bytes", arch, pulled)
	} else {
		t.Logf("%s: %.1f MB, %.1f MB unpacked", arch, float64(pulled)/(1<<20), float64(unpacked)/(1<<20))
	}
	if n := bytes.Count(files[rootsPath], []byte("BEGIN CERTIFICATE")); n < 80 {
		t.Errorf("it has %d certificate authorities", n)
	}
	if arch == runtime.GOARCH {
		checkBinary(t, files[binaryPath])
	}
}

// pulledSize is the size of all that a registry sends of an image.
func pulledSize(t *testing.T, image v1.Image) int64 {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	size := manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size
}

// checkBinary runs what is in the image.
func checkBinary(t *testing.T, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "k8s-runner")
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "k8s-runner 1.2.3-test ") {
		t.Errorf("its version is %q, %v", out, err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte(filepath.Dir(here))) {
		t.Error("it tells where it was built")
	}
}

// checkPush pushes to a registry and reads back.
func checkPush(t *testing.T, archive string, want v1.ImageIndex) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/agynio/k8s-runner:1"
	if err := push(t.Context(), archive, reference, true); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := digest(t, got), digest(t, want); a != b {
		t.Errorf("%s was pushed, %s is there", b, a)
	}
}

func digest(t *testing.T, index v1.ImageIndex) v1.Hash {
	t.Helper()
	hash, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// copySource copies the runner's module to another folder.
func copySource(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, inside)
		switch {
		case d.IsDir() && (d.Name() == ".git" || inside == "bin"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
