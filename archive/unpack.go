package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Unpacker unpacks archives of strangers on this machine. Nothing is written outside
// its folder, also through links that were there before.
type Unpacker struct {
	Root *os.Root
	// Rename gives an entry another name.
	Rename func(name string) (string, error)
	// Skipped is told of what is left out: devices, and links that lead out of the
	// folder, through which others might be made to write.
	Skipped func(name, why string)
	// made are folders that were not there. They get their modes and times at the
	// end, when nothing more is written into them.
	made []*Entry
}

// Unpack unpacks all of an archive. Owners are those of any new file; of the modes
// the bits setuid, setgid and sticky are left out.
func (u *Unpacker) Unpack(r *Reader) error {
	for {
		e, err := r.Next()
		var fault *Fault
		switch {
		case errors.Is(err, io.EOF):
			return u.finish()
		case errors.As(err, &fault) && fault.Token == Unsupported:
			u.Skipped(fault.Name, fault.Message)
			continue
		case err != nil:
			return err
		}
		if err := u.renamed(e); err != nil {
			return err
		}
		if err := u.put(e, r); err != nil {
			return fmt.Errorf("unpacking %s: %w", quote(e.Name), err)
		}
	}
}

func (u *Unpacker) renamed(e *Entry) (err error) {
	if e.Name, err = u.Rename(e.Name); err != nil || e.Kind != HardLink {
		return err
	}
	e.Target, err = u.Rename(e.Target)
	return err
}

func (u *Unpacker) put(e *Entry, content io.Reader) error {
	if e.Kind == Folder {
		return u.folder(e)
	}
	if e.Kind == Symlink && !staysInside(e) {
		u.Skipped(e.Name, "is a link that leads out, to "+quote(e.Target))
		return nil
	}
	if err := u.Root.MkdirAll(path.Dir(e.Name), 0o755); err != nil {
		return err
	}
	if err := u.clear(e.Name); err != nil {
		return err
	}
	switch e.Kind {
	case Symlink:
		return u.Root.Symlink(e.Target, e.Name)
	case HardLink:
		return u.Root.Link(e.Target, e.Name)
	}
	return u.write(e, content)
}

// folder makes a folder, or leaves one as it is: nothing of a stranger decides who
// may look into the user's.
func (u *Unpacker) folder(e *Entry) error {
	if info, err := u.Root.Stat(e.Name); err == nil && info.IsDir() {
		return nil
	}
	u.made = append(u.made, e)
	return u.Root.MkdirAll(e.Name, 0o700)
}

// clear takes away what is in the place of a file, but for a folder.
func (u *Unpacker) clear(name string) error {
	info, err := u.Root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("a folder of that name is there already")
	}
	return u.Root.Remove(name)
}

func (u *Unpacker) write(e *Entry, content io.Reader) error {
	f, err := u.Root.OpenFile(e.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	err = errors.Join(err, f.Chmod(permissions(e)), f.Close())
	if err != nil {
		return errors.Join(err, u.Root.Remove(e.Name)) // half a file helps nobody
	}
	return u.Root.Chtimes(e.Name, time.Time{}, e.ModTime)
}

func permissions(e *Entry) fs.FileMode { return fs.FileMode(e.Mode & 0o777) }

// finish gives folders their modes, the deepest first.
func (u *Unpacker) finish() error {
	slices.SortFunc(u.made, func(a, b *Entry) int { return len(b.Name) - len(a.Name) })
	for _, e := range u.made {
		if err := errors.Join(u.Root.Chmod(e.Name, permissions(e)), u.Root.Chtimes(e.Name, time.Time{}, e.ModTime)); err != nil {
			return fmt.Errorf("finishing the folder %s: %w", quote(e.Name), err)
		}
	}
	return nil
}

// staysInside reports whether a link leads to a place in the same folder: it goes up
// no further than it is deep, and up only at its beginning, since behind another
// link up is somewhere else.
func staysInside(e *Entry) bool {
	depth := strings.Count(e.Name, "/")
	down := false
	for part := range strings.SplitSeq(e.Target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; down || depth < 0 {
				return false
			}
		default:
			down = true
		}
	}
	return !path.IsAbs(e.Target)
}
