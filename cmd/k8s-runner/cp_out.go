package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agynio/k8s-runner/archive"
)

// out copies a place in the workload to dst on this machine.
func (x *copying) out(from place, dst string) error {
	src := from.inContainer()
	inside := src == "/" || contents(src)
	src = path.Clean(src)
	argv := []string{"tar", "-cf", "-", "-C", path.Dir(src), "./" + path.Base(src)}
	base := path.Base(src)
	if inside {
		argv, base = []string{"tar", "-cf", "-", "-C", src, "."}, "."
	}
	if dst == "-" {
		return x.toStdout(argv)
	}
	read, write := io.Pipe()
	meter := x.newMeter()
	defer meter.end()
	ran := make(chan error, 1)
	go func() {
		err := x.run(&program{argv: argv, stdout: io.MultiWriter(write, meter)})
		_ = write.Close() // it returns no error
		ran <- err
	}()
	unpacked := x.unpack(read, base, dst)
	_ = read.CloseWithError(errUnpack) // it returns no error
	// If the program failed, that it sent no whole archive is not the reason.
	if err := <-ran; err != nil && !errors.Is(err, errUnpack) {
		return err
	}
	return unpacked
}

// errUnpack ends a program whose archive cannot be unpacked.
var errUnpack = errors.New("the archive cannot be unpacked")

func (x *copying) toStdout(argv []string) error {
	if isTerminal(x.cmd.OutOrStdout()) {
		return usage(x.cmd, errors.New("an archive is nothing for a terminal; send it to a file or a program"))
	}
	return x.run(&program{argv: argv, stdout: x.cmd.OutOrStdout()})
}

// unpack unpacks an archive, of which all is called base or is below it, at dst.
func (x *copying) unpack(in io.Reader, base, dst string) error {
	r := archive.NewReader(in)
	first, err := r.Peek()
	if errors.Is(err, io.EOF) {
		_, _ = io.Copy(io.Discard, in) // so that the program goes on to say what it lacks
		return errors.New("the workload sent an empty archive")
	}
	if err != nil {
		return err
	}
	what := aFile
	if first.Kind == archive.Folder {
		what = aFolder
	}
	is, err := kindHere(dst)
	if err != nil {
		return err
	}
	where, err := lay(what, base, base == ".", filepath.ToSlash(dst), is)
	if err != nil {
		return err
	}
	if where.top {
		if err := os.Mkdir(where.folder, 0o755); err != nil { //nolint:gosec // the umask says who may look into it
			return err
		}
	}
	root, err := os.OpenRoot(filepath.FromSlash(where.folder))
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only looked into
	left := 0
	u := &archive.Unpacker{
		Root: root,
		Skipped: func(name, why string) {
			left++
			x.skipped(name, why)
		},
		Rename: func(name string) (string, error) { return rename(name, base, where.name) },
	}
	if err := u.Unpack(r); err != nil {
		return err
	}
	if left > 0 && what == aFile {
		return errors.New("it is a link; what it leads to can be copied")
	}
	_, err = io.Copy(io.Discard, in) // what fills the last block
	return err
}

// rename gives what is called base, or is below it, the name to.
func rename(name, base, to string) (string, error) {
	if base == "." {
		return path.Join(to, name), nil
	}
	below, ok := strings.CutPrefix(name, base)
	if !ok || below != "" && below[0] != '/' {
		return "", fmt.Errorf("the workload sent %q, which is not below %q", name, base)
	}
	return path.Join(to, strings.TrimPrefix(below, "/")), nil
}

func kindHere(path string) (kind, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nothing, nil
	case err != nil:
		return nothing, err
	case info.IsDir():
		return aFolder, nil
	}
	return aFile, nil
}
