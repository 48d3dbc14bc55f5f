package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// writeArchive writes index as an OCI layout in a tar, as docker load, ctr and skopeo take it.
func writeArchive(r recipe, index v1.ImageIndex, path string) error {
	dir, err := os.MkdirTemp("", "k8s-runner-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("beginning the archive: %w", err)
	}
	names := map[string]string{
		"org.opencontainers.image.ref.name": r.version,
		"io.containerd.image.name":          repository + ":" + r.version,
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("adding the image to the archive: %w", err)
	}
	var entries []entry
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		entries = append(entries, entry{inside, 0o644, data})
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the archive's files: %w", err)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(out, r.created, entries), out.Close())
}

// openArchive unpacks an archive into dir and returns the image for all architectures.
func openArchive(path, dir string) (v1.ImageIndex, error) {
	if err := unpack(path, dir); err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s holds %d images", path, len(manifest.Manifests))
	}
	return outer.ImageIndex(manifest.Manifests[0].Digest)
}

func unpack(path, dir string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for in := tar.NewReader(file); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			err = root.MkdirAll(filepath.Clean(h.Name), 0o755)
		} else {
			err = writeFile(root, h.Name, in)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(root *os.Root, name string, from io.Reader) error {
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

// push sends an archive to a registry.
func push(ctx context.Context, path, reference string, insecure bool) error {
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(reference, options...)
	if err != nil {
		return fmt.Errorf("reading the reference: %w", err)
	}
	dir, err := os.MkdirTemp("", "k8s-runner-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := openArchive(path, dir)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", ref, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Println(ref.Context().Digest(digest.String()))
	return nil
}
