package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// words is a flag that may be repeated.
type words []string

func (w *words) String() string     { return strings.Join(*w, " ") }
func (w *words) Set(s string) error { *w = append(*w, s); return nil }

// buildImage makes an image of layer tarballs and a config, with no daemon.
func buildImage(_ context.Context, args []string) error {
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	out := fs.String("o", "", "output: a docker archive")
	ref := fs.String("t", "", "name of the image")
	arch := fs.String("arch", runtime.GOARCH, "architecture")
	cfg := v1.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, Volumes: map[string]struct{}{}}
	fs.StringVar(&cfg.User, "user", "", "user")
	fs.StringVar(&cfg.WorkingDir, "workdir", "", "working directory")
	fs.Var((*words)(&cfg.Env), "env", "K=V (repeat)")
	fs.Var((*words)(&cfg.Entrypoint), "entrypoint", "word of the entry point (repeat)")
	fs.Var((*words)(&cfg.Cmd), "cmd", "word of the command (repeat)")
	fs.Func("volume", "anonymous volume (repeat)", func(path string) error { cfg.Volumes[path] = struct{}{}; return nil })
	var layers words
	fs.Var(&layers, "layer", "layer tarball (repeat)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	tag, err := name.NewTag(*ref)
	if err != nil {
		return fmt.Errorf("reading the image's name: %w", err)
	}
	img := empty.Image
	for _, path := range layers {
		layer, err := tarball.LayerFromFile(path)
		if err != nil {
			return fmt.Errorf("reading the layer %s: %w", path, err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return fmt.Errorf("adding the layer %s: %w", path, err)
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", *arch, cfg
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return err
	}
	return tarball.WriteToFile(*out, tag, img)
}

// push pushes an image tarball, with user:password if given.
func push(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("push", flag.ContinueOnError)
	auth := fs.String("auth", "", "user:password")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 2 {
		return errors.New("usage: tools push [-auth U:P] TARBALL REFERENCE")
	}
	ref, err := name.ParseReference(fs.Arg(1), name.Insecure)
	if err != nil {
		return err
	}
	img, err := tarball.ImageFromPath(fs.Arg(0), nil)
	if err != nil {
		return fmt.Errorf("reading the image %s: %w", fs.Arg(0), err)
	}
	opts := []remote.Option{remote.WithContext(ctx)}
	if u, p, ok := strings.Cut(*auth, ":"); ok {
		opts = append(opts, remote.WithAuth(&authn.Basic{Username: u, Password: p}))
	}
	if err := remote.Write(ref, img, opts...); err != nil {
		return fmt.Errorf("pushing %s: %w", ref, err)
	}
	return nil
}
