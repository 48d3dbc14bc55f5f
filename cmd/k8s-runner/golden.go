package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/lint"
	"github.com/agynio/k8s-runner/render/golden"
)

func newGolden() *cobra.Command {
	var f offlineFlags
	var update bool
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Compare golden cases with what templates render",
		Long: `Render the golden cases in DIR/cases with the templates in DIR, and show how what
comes out differs from what they expect: - is expected, + is rendered.

A case is a folder with request.yaml, a StartWorkloadRequest that starts with a
comment, and expected.yaml or expected.err, which --update writes. A case may
have a config.yaml and a catalog.yaml of its own, and templates/, which replace
those in DIR.

--update does not accept that a template fails where it did not before.`,
		Example: `  k8s-runner templates test my-templates
  k8s-runner templates test my-templates --update`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: offline(func(cmd *cobra.Command, args []string) error {
			suite, err := f.open(args[0])
			if err != nil {
				return err
			}
			if _, err := engine.New(engine.Options(suite)); err != nil {
				return err // the same for every case
			}
			run := &goldenRun{suite: suite, dir: filepath.Join(args[0], lint.CaseFolder), update: update, out: cmd.OutOrStdout()}
			return run.all()
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&update, "update", false, "write what the cases render to")
	return cmd
}

// goldenRun compares the cases of a folder, or updates them.
type goldenRun struct {
	suite  golden.Suite
	dir    string
	update bool
	out    io.Writer
}

// verdict is the word for a case.
type verdict string

const (
	verdictOK      verdict = "ok"
	verdictFail    verdict = "FAIL"
	verdictNew     verdict = "new"
	verdictUpdated verdict = "updated"
)

// all runs every case, a line each.
func (r *goldenRun) all() error {
	names, err := golden.Cases(os.DirFS(r.dir))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no cases; 'k8s-runner templates export DIR' writes some, or make %s and run 'templates test DIR --update'",
			r.dir, filepath.Join(r.dir, "NAME", golden.RequestFile))
	}
	count := map[verdict]int{}
	for _, name := range names {
		v, detail := r.one(name)
		count[v]++
		if _, err := fmt.Fprintf(r.out, "%-7s  %s\n%s", v, name, detail); err != nil {
			return err
		}
	}
	summary := counted(len(names), "case")
	for _, v := range []verdict{verdictOK, verdictUpdated, verdictNew, verdictFail} {
		if count[v] > 0 {
			summary += fmt.Sprintf(", %d %s", count[v], v)
		}
	}
	if count[verdictFail]+count[verdictNew] == 0 {
		_, err := fmt.Fprintln(r.out, summary)
		return err
	}
	if !r.update {
		summary += "; if what was rendered is right, --update accepts it"
	}
	return errors.New(summary)
}

// one runs the case called name; detail are whole lines.
func (r *goldenRun) one(name string) (v verdict, detail string) {
	fault := func(err error) (verdict, string) { return verdictFail, indented(err.Error()) }
	root := os.DirFS(r.dir)
	result, err := r.suite.Render(root, name)
	if err != nil {
		return fault(err)
	}
	diff, err := golden.Check(root, name, result)
	if err != nil {
		return fault(err)
	}
	if diff == "" {
		return verdictOK, ""
	}
	expectsManifests, errManifests := exists(filepath.Join(r.dir, name, golden.ManifestFile))
	expectsError, errError := exists(filepath.Join(r.dir, name, golden.ErrorFile))
	if err := errors.Join(errManifests, errError); err != nil {
		return fault(err)
	}
	switch {
	case result.Broken && !expectsError:
		return verdictFail, indented(result.Err)
	case !r.update && !expectsManifests && !expectsError:
		return verdictNew, ""
	case !r.update:
		return verdictFail, indented(diff)
	}
	if err := golden.Update(filepath.Join(r.dir, name), result); err != nil {
		return fault(err)
	}
	return verdictUpdated, indented(diff)
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// exists reports whether there is something at path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
