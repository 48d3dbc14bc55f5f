package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agynio/k8s-runner/lint"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/templates"
)

func newExport() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the shipped templates into a folder",
		Long: `Write the shipped templates into DIR, with README.md, their contract, and golden
cases in DIR/cases for 'templates test DIR'. A file that is there and differs is
left as it is, and then nothing is written, unless --force. What is in DIR
besides stays.`,
		Example: `  k8s-runner templates export my-templates`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: offline(func(cmd *cobra.Command, args []string) error {
			files, err := exported()
			if err != nil {
				return err
			}
			changes, err := changesOf(args[0], files, force)
			if err != nil {
				return err
			}
			for _, name := range changes {
				file := filepath.Join(args[0], name)
				if err := writeExported(file, files[name]); err != nil {
					return err
				}
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), "wrote", file); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s written, %d were there already\n", counted(len(changes), "file"), len(files)-len(changes))
			return err
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite files that differ")
	return cmd
}

// exported returns all that an export writes, by path.
func exported() (map[string][]byte, error) {
	shipped, err := templates.Shipped()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"README.md": templates.Readme}
	for name, text := range shipped {
		files[name] = []byte(text)
	}
	cases, err := golden.ShippedCases()
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(cases, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			// Cases with templates of their own are about those, and refused
			// requests are about no template.
			for _, name := range [...]string{golden.TemplateFolder, golden.LayerFolder, golden.ErrorFile} {
				if _, err := fs.Stat(cases, path.Join(file, name)); err == nil {
					return fs.SkipDir
				}
			}
			return nil
		}
		data, err := fs.ReadFile(cases, file)
		files[path.Join(lint.CaseFolder, file)] = data
		return err
	})
	return files, err
}

// changesOf returns the names of the files that are not in dir yet or, with
// force, differ there, sorted.
func changesOf(dir string, files map[string][]byte, force bool) ([]string, error) {
	var changes, differ []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		there, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			changes = append(changes, name)
		case err != nil:
			return nil, fmt.Errorf("exporting: %w", err)
		case !bytes.Equal(there, files[name]):
			changes, differ = append(changes, name), append(differ, filepath.Join(dir, name))
		}
	}
	if len(differ) > 0 && !force {
		return nil, fmt.Errorf("nothing was written: these are there and differ; --force overwrites them\n  %s", strings.Join(differ, "\n  "))
	}
	return changes, nil
}

func writeExported(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // not secret
		return fmt.Errorf("exporting: %w", err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil { //nolint:gosec // not secret
		return fmt.Errorf("exporting: %w", err)
	}
	return nil
}
