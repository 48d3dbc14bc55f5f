package archive

import (
	"archive/tar"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Kind is what an entry makes.
type Kind int

// The kinds. A HardLink is another name of a File that comes before it.
const (
	Folder Kind = iota + 1
	File
	Symlink
	HardLink
)

// Entry is one of an archive, which stays below the folder of the archive.
type Entry struct {
	Kind Kind
	// Name is clean and relative; "." is the folder itself.
	Name string
	// Target is where a link leads: that of a Symlink as it was written, that of a
	// HardLink as Name.
	Target string
	// Size is that of a File, in bytes.
	Size int64
	// Mode has the permissions and the bits setuid, setgid and sticky.
	Mode     int64
	UID, GID int
	ModTime  time.Time
}

// header is the entry as every tar reads it: GNU's form knows long names, and
// unlike the newer one of POSIX the tar of busybox knows it.
func (e *Entry) header() *tar.Header {
	h := &tar.Header{
		Format: tar.FormatGNU, Typeflag: tar.TypeReg, Name: e.Name, Linkname: e.Target, Size: e.Size,
		Mode: e.Mode, Uid: e.UID, Gid: e.GID, ModTime: e.ModTime,
	}
	switch e.Kind {
	case Folder:
		h.Typeflag, h.Name = tar.TypeDir, e.Name+"/"
	case Symlink:
		h.Typeflag = tar.TypeSymlink
	case HardLink:
		h.Typeflag = tar.TypeLink
	case File:
	}
	return h
}

// Tokens of the faults of an entry.
const (
	Outside     = "archive_entry_outside"
	Unsupported = "archive_entry_unsupported"
	Invalid     = "invalid_archive_entry"
)

// Fault is why an entry is refused.
type Fault struct {
	// Token is one of the tokens above.
	Token string
	// Name is the entry's as the archive has it.
	Name    string
	Message string
}

// Error names the entry and says what is wrong with it.
func (f *Fault) Error() string { return fmt.Sprintf("%s %s", quote(f.Name), f.Message) }

// Limits of Linux, in bytes.
const (
	maxPath  = 4095
	maxShown = 100
)

// quote shows a name of a stranger.
func quote(name string) string {
	if len(name) > maxShown {
		return fmt.Sprintf("%q…", name[:maxShown])
	}
	return fmt.Sprintf("%q", name)
}

// read makes an Entry of a header, as far as the header alone can tell.
func read(h *tar.Header) (*Entry, *Fault) {
	refuse := func(token, format string, args ...any) (*Entry, *Fault) {
		return nil, &Fault{Token: token, Name: h.Name, Message: fmt.Sprintf(format, args...)}
	}
	e := &Entry{Kind: kindOf(h), Target: h.Linkname, Mode: h.Mode & 0o7777, UID: h.Uid, GID: h.Gid, ModTime: h.ModTime}
	if e.Kind == 0 {
		return refuse(Unsupported, "is %s; files, folders and links can be unpacked", describe(h))
	}
	name, token, problem := clean(h.Name)
	if problem != "" {
		return refuse(token, "%s", problem)
	}
	e.Name = name
	switch e.Kind {
	case File:
		e.Size, e.Target = h.Size, ""
	case Folder:
		e.Target = ""
	case Symlink:
		if e.Target == "" || len(e.Target) > maxPath || strings.ContainsRune(e.Target, 0) {
			return refuse(Invalid, "is a link to nothing that can be")
		}
	case HardLink:
		if e.Target, token, problem = clean(h.Linkname); problem != "" {
			return refuse(token, "is a hard link to %s, which %s", quote(h.Linkname), problem)
		}
	}
	if e.Name == "." && e.Kind != Folder {
		return refuse(Invalid, "is the folder itself, and no folder")
	}
	return e, nil
}

// kindOf is 0 for what is not supported.
func kindOf(h *tar.Header) Kind {
	switch h.Typeflag {
	case tar.TypeDir:
		return Folder
	case tar.TypeSymlink:
		return Symlink
	case tar.TypeLink:
		return HardLink
	case tar.TypeReg:
		if isSparse(h) {
			return 0
		}
		// An old way to say that it is a folder.
		if strings.HasSuffix(h.Name, "/") && h.Size == 0 {
			return Folder
		}
		return File
	}
	return 0
}

// isSparse reports whether the header is one of GNU's for a file with holes, whose
// data is not what comes out.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func describe(h *tar.Header) string {
	switch h.Typeflag {
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a named pipe"
	case tar.TypeReg, tar.TypeGNUSparse:
		return "a sparse file (make the archive without --sparse)"
	}
	return fmt.Sprintf("of the type %q", h.Typeflag)
}

// clean returns the name of an entry in its one form, or what is wrong with it.
func clean(name string) (cleaned, token, problem string) {
	switch {
	case name == "":
		return "", Invalid, "has no name"
	case strings.ContainsRune(name, 0):
		return "", Invalid, "has a NUL in its name"
	case len(name) > maxPath:
		return "", Invalid, fmt.Sprintf("has a longer name than Linux takes, which is %d bytes", maxPath)
	case path.IsAbs(name):
		return "", Outside, "has an absolute name"
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", Outside, `has ".." in its name`
	}
	return path.Clean(name), "", ""
}
