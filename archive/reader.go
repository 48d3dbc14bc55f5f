// Package archive reads tar archives of strangers, of which it lets nothing pass
// that would leave the folder in which they are unpacked: no absolute name, no "..",
// nothing through a link, no device. It also packs and unpacks folders of the
// machine it runs on.
package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/agynio/k8s-runner/workload"
)

// block is what an archive is made of, in bytes.
const block = 512

// Reader reads an archive entry by entry.
type Reader struct {
	in   *counter
	tar  *tar.Reader
	tree tree
	// next is where the next header begins, in bytes from the beginning.
	next int64
	// peeked is what Next returns next, if there was a Peek.
	peeked func() (*Entry, error)
}

// NewReader reads the archive in.
func NewReader(in io.Reader) *Reader {
	c := &counter{in: in}
	return &Reader{in: c, tar: tar.NewReader(c)}
}

// Next goes to the next entry, whose content Read then reads. After the last it
// returns io.EOF; for an entry that is refused a *Fault, after which reading can go
// on; else a *workload.Error for what is no archive, or cut off.
func (r *Reader) Next() (*Entry, error) {
	if peeked := r.peeked; peeked != nil {
		r.peeked = nil
		return peeked()
	}
	for {
		h, err := r.tar.Next()
		// Which names are safe is decided here, whatever GODEBUG says.
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, r.explain(err)
		}
		r.next = up(r.in.count)
		if h.Typeflag == tar.TypeXGlobalHeader {
			if fault := checkGlobal(h); fault != nil {
				return nil, fault
			}
			continue
		}
		if h.Typeflag == tar.TypeReg {
			r.next = up(r.in.count + h.Size)
		}
		e, fault := read(h)
		if fault != nil {
			return nil, fault
		}
		if token, problem := r.tree.add(e); problem != "" {
			return nil, &Fault{Token: token, Name: h.Name, Message: problem}
		}
		return e, nil
	}
}

// Peek returns what Next then returns, too.
func (r *Reader) Peek() (*Entry, error) {
	e, err := r.Next()
	r.peeked = func() (*Entry, error) { return e, err }
	return e, err
}

// Read reads the content of a File.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.tar.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.explain(err)
	}
	return n, err
}

// checkGlobal refuses a header that would give all entries after it a name, a size
// or an owner, which only some programs apply.
func checkGlobal(h *tar.Header) *Fault {
	for _, key := range []string{"path", "linkpath", "size", "uid", "gid"} {
		if h.PAXRecords[key] != "" {
			return &Fault{Token: Unsupported, Name: h.Name, Message: "gives several entries one " + key}
		}
	}
	return nil
}

// explain tells the end of an archive from one that was cut off. Many programs take
// an archive without a mark at its end; if it ends between two entries nothing else
// shows that there were more.
func (r *Reader) explain(err error) error {
	switch {
	case r.in.err != nil:
		return fmt.Errorf("reading the archive: %w", r.in.err)
	case errors.Is(err, io.EOF) && r.in.count >= r.next+block:
		return io.EOF
	case r.next == 0 && r.in.compression() != "":
		return workload.Errorf(workload.InvalidArgument, "invalid_archive", "the archive is compressed with %s; send the tar itself", r.in.compression())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return workload.Errorf(workload.InvalidArgument, "archive_truncated",
			"the archive is cut off: it ends after %d bytes, without the zero blocks that end an archive", r.in.count)
	}
	return workload.Errorf(workload.InvalidArgument, "invalid_archive", "this is no tar archive, from byte %d on", r.next)
}

// up is n, or the end of the block that it is in.
func up(n int64) int64 { return (n + block - 1) / block * block }

// counter counts what is read, and keeps how it begins.
type counter struct {
	in    io.Reader
	count int64
	begin [6]byte
	// err is an error of in other than its end.
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.count < int64(len(c.begin)) {
		copy(c.begin[c.count:], p[:n])
	}
	c.count += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// compression names the program that packed what is no tar.
func (c *counter) compression() string {
	for _, known := range []struct{ name, magic string }{
		{"gzip", "\x1f\x8b"}, {"bzip2", "BZh"}, {"xz", "\xfd7zXZ\x00"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"zip", "PK\x03\x04"},
	} {
		if bytes.HasPrefix(c.begin[:], []byte(known.magic)) {
			return known.name
		}
	}
	return ""
}
