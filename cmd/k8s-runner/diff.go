package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/agynio/k8s-runner/lint"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/templates"
)

func newDiff() *cobra.Command {
	var f offlineFlags
	cmd := &cobra.Command{
		Use:   "diff DIR",
		Short: "Show what templates and layers change against the shipped ones",
		Long: `Render each shipped golden case, and each of DIR/cases, with the shipped templates
and with those in DIR and the layers in DIR/layers, and show the difference: - is
shipped, + is yours. Before an upgrade of the runner, run it with the new binary: it
shows what your layers make of the new templates.`,
		Example: `  k8s-runner templates diff my-layers
  k8s-runner templates diff my-layers --catalog catalog.yaml --config runner.yaml`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: offline(func(cmd *cobra.Command, args []string) error {
			mine, err := f.open(args[0])
			if err != nil {
				return err
			}
			files, err := templates.Shipped()
			if err != nil {
				return err
			}
			shipped, err := f.suite(files)
			if err != nil {
				return err
			}
			cases, err := golden.ShippedCases()
			if err != nil {
				return err
			}
			d := &differ{shipped: shipped, mine: mine, out: cmd.OutOrStdout()}
			for _, root := range []fs.FS{cases, os.DirFS(filepath.Join(args[0], lint.CaseFolder))} {
				if err := d.all(root); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(d.out, "%s differ, %d are the same\n", counted(d.differ, "case"), d.same)
			return err
		}),
	}
	f.add(cmd.Flags())
	return cmd
}

// differ renders cases in two ways.
type differ struct {
	shipped, mine golden.Suite
	out           io.Writer
	differ, same  int
}

// all compares the cases of root that bring no templates of their own.
func (d *differ) all(root fs.FS) error {
	names, err := golden.Cases(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := d.mine.Read(root, name)
		if err != nil {
			return err
		}
		if c.Refused || len(c.Own) > 0 || (c.Layered && len(c.Options.Layers) != len(d.mine.Layers)) {
			continue // it is about a request, or about templates of its own
		}
		if err := d.one(root, name); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) one(root fs.FS, name string) error {
	shipped, err := d.shipped.Render(root, name)
	if err != nil {
		return err
	}
	mine, err := d.mine.Render(root, name)
	if err != nil {
		return err
	}
	text := diff.Diff(name+" (shipped)", []byte(shipped.Manifests+shipped.Err), name, []byte(mine.Manifests+mine.Err))
	if len(text) == 0 {
		d.same++
		return nil
	}
	d.differ++
	_, hunks, _ := strings.Cut(string(text), "\n")
	_, err = fmt.Fprintln(d.out, hunks)
	return err
}
