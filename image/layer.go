package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	binaryPath = "usr/local/bin/k8s-runner"
	rootsPath  = "etc/ssl/certs/ca-certificates.crt"
)

// entry is one file of the image. All belong to root, and nobody may write them.
type entry struct {
	name string
	mode int64
	data []byte
}

// newLayer holds the whole image: the binary, the public certificate authorities, the licence.
func newLayer(r recipe, binary string) (v1.Layer, error) {
	entries := []entry{
		{"etc/passwd", 0o444, []byte("root:x:0:0:root:/:/sbin/nologin\nrunner:x:65532:65532:runner:/:/sbin/nologin\n")},
		{rootsPath, 0o444, roots()},
	}
	for _, file := range []struct {
		path, name string
		mode       int64
	}{
		{binary, binaryPath, 0o555},
		{filepath.Join(r.source, "LICENSE"), "usr/share/doc/k8s-runner/LICENSE", 0o444},
		{filepath.Join(r.source, "NOTICE"), "usr/share/doc/k8s-runner/NOTICE", 0o444},
	} {
		data, err := os.ReadFile(file.path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{file.name, file.mode, data})
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, r.created, entries); err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
}

// roots are Mozilla's, as PEM. Those that it trusts with conditions are left out: a file
// cannot state them.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// writeTar writes entries with the folders above them, each of which comes once.
func writeTar(w io.Writer, at time.Time, entries []entry) error {
	out, made := tar.NewWriter(w), map[string]bool{}
	var folder func(name string) error
	folder = func(name string) error {
		if name == "." || made[name] {
			return nil
		}
		if err := folder(filepath.Dir(name)); err != nil {
			return err
		}
		made[name] = true
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR})
	}
	for _, e := range entries {
		if err := folder(filepath.Dir(e.name)); err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(e.data); err != nil {
			return err
		}
	}
	return out.Close()
}
