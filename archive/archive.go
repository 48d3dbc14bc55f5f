package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/agynio/k8s-runner/workload"
)

// maxFaults is how many faults of an archive are told.
const maxFaults = 100

// Archive is one that was checked. It holds on to the bytes it was made of.
type Archive struct {
	payload []byte
	entries []entryAt
	tree    tree
}

type entryAt struct {
	Entry
	// begin is where the content is in payload.
	begin int64
}

// Open checks all of an archive. Its error has a violation for each entry that is
// refused, under the name of the request's field.
func Open(payload []byte, field string) (*Archive, error) {
	a := &Archive{payload: payload}
	r := NewReader(bytes.NewReader(payload))
	var faults []workload.Violation
	for len(faults) < maxFaults {
		e, err := r.Next()
		var fault *Fault
		switch {
		case err == nil:
			a.entries = append(a.entries, entryAt{*e, r.in.count})
			continue
		case errors.As(err, &fault):
			faults = append(faults, workload.Violation{
				Field: field + "[" + quote(fault.Name) + "]", Token: fault.Token, Message: fault.Message,
			})
			continue
		case !errors.Is(err, io.EOF) && len(faults) == 0:
			return nil, err
		}
		break
	}
	if len(faults) > 0 {
		return nil, workload.Invalid(faults)
	}
	a.tree = r.tree
	return a, nil
}

// Empty reports whether there is nothing to unpack.
func (a *Archive) Empty() bool { return len(a.entries) == 0 }

// Folders returns the names of all folders, also of those that have no entry of
// their own; not of the folder itself.
func (a *Archive) Folders() []string { return a.tree.folders() }

// Record is the size that what WriteTo writes is a multiple of, in bytes.
const Record = 20 * block

// WriteTo writes the archive anew, in a form that all programs read alike, so that
// none finds in it what Open did not. Times are in seconds, owners are numbers.
func (a *Archive) WriteTo(to io.Writer) (int64, error) {
	out := &counted{to: to}
	writer := tar.NewWriter(out)
	for i := range a.entries {
		e := &a.entries[i]
		if err := writer.WriteHeader(e.header()); err != nil {
			return out.count, fmt.Errorf("writing the entry %s: %w", quote(e.Name), err)
		}
		if _, err := writer.Write(a.payload[e.begin : e.begin+e.Size]); err != nil {
			return out.count, fmt.Errorf("writing the content of %s: %w", quote(e.Name), err)
		}
	}
	if err := writer.Close(); err != nil {
		return out.count, fmt.Errorf("writing the end of the archive: %w", err)
	}
	_, err := out.Write(make([]byte, (Record-out.count%Record)%Record))
	return out.count, err
}

// Rewrite copies an archive in the form of WriteTo. It ends at the first entry that
// is refused.
func Rewrite(to io.Writer, from io.Reader) error {
	r, w := NewReader(from), tar.NewWriter(to)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.Close()
		}
		if err != nil {
			return err
		}
		if err := w.WriteHeader(e.header()); err != nil {
			return fmt.Errorf("writing the entry %s: %w", quote(e.Name), err)
		}
		if _, err := io.CopyN(w, r, e.Size); err != nil {
			return fmt.Errorf("copying %s: %w", quote(e.Name), err)
		}
	}
}

type counted struct {
	to    io.Writer
	count int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.count += int64(n)
	return n, err
}
