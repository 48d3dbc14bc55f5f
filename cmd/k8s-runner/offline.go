package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/layers"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// offlineFlags say what templates are rendered with. Nothing else does: the
// environment of the command has no part in it.
type offlineFlags struct{ catalog, config string }

func (f *offlineFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.catalog, "catalog", "", "catalog `FILE` (default: catalog.path of --config, or else the shipped one)")
	flags.StringVar(&f.config, "config", "", "YAML `FILE` of settings (default: the runner's defaults)")
}

// open returns what to render the templates in dir with, and the layers in
// dir/layers. A folder with layers needs no templates: those that ship count.
func (f *offlineFlags) open(dir string) (golden.Suite, error) {
	laid, err := layers.Read(os.DirFS(filepath.Join(dir, golden.LayerFolder)))
	if err != nil {
		return golden.Suite{}, fmt.Errorf("%s: %w", filepath.Join(dir, golden.LayerFolder), err)
	}
	read := templates.Folder
	if len(laid) > 0 {
		read = templates.Laid
	}
	files, err := read(dir)
	if err != nil {
		return golden.Suite{}, err
	}
	suite, err := f.suite(files)
	suite.Layers = laid
	return suite, err
}

// suite returns what to render files with.
func (f *offlineFlags) suite(files map[string]string) (golden.Suite, error) {
	settings, err := config.Load(config.Sources{File: f.config, Namespace: golden.Namespace})
	if err != nil {
		return golden.Suite{}, err
	}
	path := f.catalog
	if path == "" {
		path = settings.Catalog.Path
	}
	offered, err := loadCatalog(path)
	if err != nil {
		return golden.Suite{}, err
	}
	return golden.Suite{Templates: files, Catalog: offered, Config: settings}, nil
}

// offline makes run a command of which every failure but a wrong command line
// has exit code 1: for a script it passes or it does not.
func offline(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err == nil || errors.As(err, new(*usageError)) {
			return err
		}
		var told []error
		for _, e := range apart(err) {
			told = append(told, errors.New(explained(e)))
		}
		return errors.Join(told...)
	}
}

// explained is the text of err; for a request that is refused, the table that
// its caller would see.
func explained(err error) string {
	var refused *workload.Error
	if !errors.As(err, &refused) || len(refused.Violations) == 0 {
		return err.Error()
	}
	rows := make([][]string, len(refused.Violations))
	for i, v := range refused.Violations {
		rows[i] = []string{v.Field, v.Token, v.Message}
	}
	return "the request is invalid:\n" + faultTable(rows)
}

// counted returns "1 file" or "2 files".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
