package main

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const cpHelp = `Copy files and folders into the main container of a workload, or out of it.

SRC and DST are as docker has them. If DST is a folder, SRC goes into it; else DST
is the new name. A folder SRC that ends in "/." means what is in it. "-" as SRC
is a tar archive on standard input, which is unpacked in the folder PATH; "-" as
DST puts one on standard output. A name of this machine with a colon in it is
written ./a:b. PATH begins at the root of the container.

The image needs a tar and, for what goes in, a sh. What is there already is
replaced; folders above PATH are made. What goes in belongs to root, with
--archive to the numbers of the owners here, or, where the container is not
root, to its user.

What comes out of a workload writes nothing outside DST. Left out, and told on
standard error, are devices and links that lead out of what is copied.`

// copyTimeout is the longest time for an archive that goes in with one call.
const copyTimeout = 10 * time.Minute

// copying is one run of cp.
type copying struct {
	client
	cmd *cobra.Command
	// id is that of the workload.
	id string
	// owners keeps those of this machine, quiet shows no progress.
	owners, quiet bool
}

func newCp() *cobra.Command {
	var owners, quiet bool
	cmd := &cobra.Command{
		Use:   "cp [flags] SRC ID:PATH | ID:PATH DST",
		Short: "Copy files into a workload, or out of it",
		Long:  cpHelp,
		Example: `  k8s-runner cp main.go 4f1c:/work/
  k8s-runner cp ./src/. 4f1c:/work/src
  k8s-runner cp 4f1c:/work/out ./results
  git archive HEAD | k8s-runner cp - 4f1c:/work
  k8s-runner cp 4f1c:/work - | tar -t`,
		Args: cobra.ExactArgs(2),
	}
	cmd.Flags().BoolVarP(&owners, "archive", "a", false, "keep the owners of this machine's files, by number")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	cmd = clientCommand(cmd, func(cmd *cobra.Command, c client, args []string) error {
		from, to := readPlace(args[0]), readPlace(args[1])
		if (from.ref == "") == (to.ref == "") {
			return usage(cmd, errors.New("one of SRC and DST is of a workload, ID:PATH, and the other of this machine"))
		}
		x := &copying{client: c, cmd: cmd, owners: owners, quiet: quiet}
		run := func() error { return x.out(from, to.path) }
		if to.ref != "" {
			run = func() error { return x.in(from.path, to) }
		}
		err := x.find(from.ref + to.ref)
		if err == nil {
			err = run()
		}
		if err != nil {
			return fmt.Errorf("copying %s to %s: %w", args[0], args[1], err)
		}
		return nil
	})
	timeout := cmd.Flags().Lookup("timeout")
	timeout.DefValue = copyTimeout.String()
	_ = timeout.Value.Set(timeout.DefValue) // it is a duration
	return cmd
}

// find learns the id of a workload that is there.
func (x *copying) find(ref string) (err error) {
	if x.id, err = (&refs{client: x.client}).id(x.cmd.Context(), ref); err != nil {
		return err
	}
	_, err = x.InspectWorkload(x.cmd.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: x.id})
	return err
}

// skipped tells what was left out.
func (x *copying) skipped(name, why string) {
	_, _ = fmt.Fprintf(x.cmd.ErrOrStderr(), "left out: %s %s\n", printable(name), printable(why)) // a lost line is no reason to stop
}

// place is what SRC or DST means: of the workload ref, or of this machine if that is
// empty.
type place struct{ ref, path string }

func readPlace(arg string) place {
	ref, below, found := strings.Cut(arg, ":")
	if !found || ref == "" || strings.ContainsAny(ref, "/.") {
		return place{path: arg}
	}
	return place{ref: ref, path: below}
}

// inContainer is the path of a place in a workload: one from the root, with the "/"
// or "/." at its end that says what is meant.
func (p place) inContainer() string {
	switch clean := path.Join("/", p.path); {
	case clean != "/" && contents(p.path):
		return clean + "/."
	case clean != "/" && strings.HasSuffix(p.path, "/"):
		return clean + "/"
	default:
		return clean
	}
}

// contents reports whether path means what is in a folder.
func contents(path string) bool { return path == "." || strings.HasSuffix(path, "/.") }

// kind is what is at a path.
type kind int

const (
	nothing kind = iota
	aFile
	aFolder
)

// layout is where something goes: under name into folder. The name "." means what is
// in it, and with top also the folder itself, which is not there yet.
type layout struct {
	folder, name string
	top          bool
}

// lay decides where src goes, of which base is the name, if dst is there as kind.
func lay(src kind, base string, inside bool, dst string, is kind) (layout, error) {
	clean := path.Clean(dst)
	switch {
	case is == aFolder && src == aFolder && inside:
		return layout{folder: clean, name: "."}, nil
	case is == aFolder:
		return layout{folder: clean, name: base}, nil
	case src == aFolder && is == aFile:
		return layout{}, fmt.Errorf("%s is a file, and no folder goes into it", dst)
	case src == aFolder:
		return layout{folder: clean, name: ".", top: true}, nil
	case strings.HasSuffix(dst, "/"), contents(dst):
		return layout{}, fmt.Errorf("there is no folder %s", dst)
	}
	return layout{folder: path.Dir(clean), name: path.Base(clean)}, nil
}
