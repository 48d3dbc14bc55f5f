package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agynio/k8s-runner/archive"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// oneCall is the size of the largest archive, in bytes, that goes in with one call,
// where the runner takes it: the default of its archive.max_size. Larger ones go
// through a tar that runs in the workload.
const oneCall = 64 << 20

const (
	// whatIs says what is at the path $1.
	whatIs = `if [ -d "$1" ]; then echo folder; elif [ -e "$1" ] || [ -L "$1" ]; then echo file; fi`
	// unpackHere unpacks standard input in the folder $1. Whatever comes of it, it
	// reads all: a cluster does not tell the end of a program that leaves too much.
	unpackHere = `{ mkdir -p -- "$1" && cd -- "$1" && tar -xpf -; }; code=$?; cat >/dev/null; exit $code`
)

// in copies src of this machine to a place in the workload.
func (x *copying) in(src string, to place) error {
	dst := to.inContainer()
	if src == "-" {
		return x.sendStdin(dst)
	}
	info, err := os.Lstat(src) // a link is copied as one, but for one that ends in "/"
	if err != nil {
		return err
	}
	what := aFile
	if info.IsDir() {
		what = aFolder
	}
	is, err := x.kindIn(dst)
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(src)
	if err != nil {
		return err
	}
	where, err := lay(what, filepath.Base(absolute), contents(filepath.ToSlash(src)), dst, is)
	if err != nil {
		return err
	}
	packer := &archive.Packer{Owners: x.owners, Skipped: x.skipped}
	pack := func(to io.Writer) error { return packer.Pack(to, src, where.name, where.top) }
	var all bytes.Buffer
	err = pack(&atMost{to: &all, left: oneCall})
	if err == nil {
		if err = x.put(where.folder, all.Bytes()); !tooLarge(err) {
			return err
		}
	} else if !errors.Is(err, errFull) {
		return err
	}
	packer.Skipped = func(string, string) {} // it has told
	return x.stream(where.folder, pack, nil)
}

// sendStdin unpacks an archive that comes on standard input.
func (x *copying) sendStdin(dst string) error {
	in := x.stdin()
	defer in.Close() //nolint:errcheck // it returns none
	var begin bytes.Buffer
	_, err := io.CopyN(&begin, in, oneCall+1)
	switch {
	case errors.Is(err, io.EOF):
		if err = x.put(dst, begin.Bytes()); !tooLarge(err) {
			return err
		}
	case err != nil:
		return err
	}
	return x.stream(dst, func(to io.Writer) error { return archive.Rewrite(to, io.MultiReader(&begin, in)) }, in)
}

// stdin is standard input until the command is interrupted, or it is closed. What
// then still waits for a terminal ends with the process: nothing ends such a read.
func (x *copying) stdin() io.ReadCloser {
	read, write := io.Pipe()
	go func() {
		_, err := io.Copy(write, x.cmd.InOrStdin())
		_ = write.CloseWithError(err) // it returns no error
	}()
	context.AfterFunc(x.cmd.Context(), func() { _ = read.CloseWithError(context.Cause(x.cmd.Context())) })
	return read
}

// put sends an archive with one call.
func (x *copying) put(folder string, payload []byte) error {
	_, err := x.PutArchive(x.cmd.Context(), &runnerv1.PutArchiveRequest{WorkloadId: x.id, Path: folder, TarPayload: payload})
	return err
}

// tooLarge reports whether the runner takes no archive of that size. One far above
// its limit gRPC refuses for it, without details.
func tooLarge(err error) bool {
	var failed *callError
	if !errors.As(err, &failed) || status.Code(err) != codes.ResourceExhausted {
		return false
	}
	info, _, _ := failed.details()
	return info == nil || info.GetReason() == "ARCHIVE_TOO_LARGE"
}

// stream unpacks what pack writes with a tar in the workload. What pack reads is
// closed when that has ended.
func (x *copying) stream(folder string, pack func(io.Writer) error, from io.Closer) error {
	read, write := io.Pipe()
	meter := x.newMeter()
	defer meter.end()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		_ = write.CloseWithError(pack(io.MultiWriter(write, meter))) // it returns no error
	}()
	err := x.run(&program{argv: []string{"sh", "-c", unpackHere, "cp", folder}, stdin: read, stdout: io.Discard})
	_ = read.Close() // it returns no error
	if from != nil {
		_ = from.Close() // whatever is not read is not wanted
	}
	<-packed
	return err
}

// kindIn asks what is at a path in the workload.
func (x *copying) kindIn(path string) (kind, error) {
	var answer strings.Builder
	if err := x.run(&program{argv: []string{"sh", "-c", whatIs, "cp", path}, stdout: &answer}); err != nil {
		return nothing, err
	}
	switch strings.TrimSpace(answer.String()) {
	case "folder":
		return aFolder, nil
	case "file":
		return aFile, nil
	}
	return nothing, nil
}

var errFull = errors.New("it is full")

// atMost takes a number of bytes.
type atMost struct {
	to   io.Writer
	left int
}

func (a *atMost) Write(p []byte) (int, error) {
	if len(p) > a.left {
		return 0, errFull
	}
	a.left -= len(p)
	return a.to.Write(p)
}
