package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Packer makes archives of what is on this machine.
type Packer struct {
	// Owners keeps the owners of files, by number; else they are root's.
	Owners bool
	// Skipped is told of what an archive cannot hold, such as a socket.
	Skipped func(name, why string)
}

// Pack writes an archive of source, which has the name name in it. A link is packed
// as one. The name "." packs what is in a folder, and with top the folder itself.
func (p *Packer) Pack(to io.Writer, source, name string, top bool) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(filepath.Clean(source), filepath.Clean(file))
		if err != nil {
			return err
		}
		e := path.Join(name, filepath.ToSlash(below))
		if e == "." && !top {
			return nil
		}
		return p.add(w, file, e, d)
	})
	if err != nil {
		return fmt.Errorf("packing %s: %w", source, err)
	}
	return w.Close()
}

func (p *Packer) add(w *tar.Writer, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(file); err != nil {
			return err
		}
	}
	if info.Mode()&fs.ModeSocket != 0 {
		p.Skipped(file, "is a socket")
		return nil
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	if kindOf(h) == 0 {
		p.Skipped(file, "is "+describe(h))
		return nil
	}
	e := &Entry{Kind: kindOf(h), Name: name, Target: target, Size: h.Size, Mode: h.Mode & 0o7777, ModTime: h.ModTime}
	if p.Owners {
		e.UID, e.GID = h.Uid, h.Gid
	}
	if err := w.WriteHeader(e.header()); err != nil {
		return err
	}
	if e.Kind != File {
		return nil
	}
	return copyFile(w, file, e.Size)
}

// copyFile copies size bytes of a file, which may grow meanwhile.
func copyFile(to io.Writer, file string, size int64) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if _, err := io.CopyN(to, f, size); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s became shorter while it was read", file)
	} else if err != nil {
		return err
	}
	return nil
}
