package archive

import (
	"fmt"
	"path"
	"strings"
)

// maxNames bounds what a tree holds: more than any archive of 64 MiB has that does
// not try to use up memory.
const maxNames = 1 << 18

// tree holds all names of an archive with their parents. In it each name has one
// kind, whatever the order of the entries: some programs make links last, so that
// an entry may go through one that comes after it.
type tree struct {
	top   node
	names int
}

type node struct {
	kind Kind
	// shared is true of a File that has another name.
	shared bool
	below  map[string]*node
}

// add notes an entry, or says why it cannot be there.
func (t *tree) add(e *Entry) (token, problem string) {
	if e.Name == "." {
		return "", ""
	}
	if e.Kind == HardLink {
		target := t.find(e.Target)
		if target == nil || target.kind != File {
			return Invalid, fmt.Sprintf("is a hard link to %s, which is no file of the archive before it", quote(e.Target))
		}
		target.shared = true
	}
	at, parts := &t.top, strings.Split(e.Name, "/")
	for i := range parts[:len(parts)-1] {
		above := at.below[parts[i]]
		switch {
		case above == nil:
			if above = t.grow(at, parts[i], Folder); above == nil {
				return tooMany()
			}
		case above.kind == Symlink:
			return Outside, fmt.Sprintf("goes through %s, which is a link of the archive", quote(path.Join(parts[:i+1]...)))
		case above.kind == File:
			return Invalid, fmt.Sprintf("is below %s, which is a file of the archive", quote(path.Join(parts[:i+1]...)))
		}
		at = above
	}
	name := parts[len(parts)-1]
	if same := at.below[name]; same != nil {
		return again(e, same)
	}
	kind := e.Kind
	if kind == HardLink {
		kind = File
	}
	made := t.grow(at, name, kind)
	if made == nil {
		return tooMany()
	}
	made.shared = e.Kind == HardLink
	return "", ""
}

// again says what is wrong with a second entry of one name. Where nothing is, the
// last one counts, as tar has it.
func again(e *Entry, first *node) (token, problem string) {
	switch {
	case e.Kind == Folder && first.kind == Folder, e.Kind == File && first.kind == File && !first.shared:
		return "", ""
	case e.Kind == Symlink && first.kind == Folder:
		return Outside, "is a link, and other entries are below it"
	case e.Kind == Folder && first.kind == Symlink:
		return Outside, "is a folder, and was a link before"
	}
	return Invalid, "is in the archive twice"
}

// grow adds a name, or returns nil if there are too many.
func (t *tree) grow(at *node, name string, kind Kind) *node {
	if t.names++; t.names > maxNames {
		return nil
	}
	if at.below == nil {
		at.below = map[string]*node{}
	}
	n := &node{kind: kind}
	at.below[name] = n
	return n
}

func tooMany() (token, problem string) {
	return Invalid, fmt.Sprintf("is one too many: there are more than %d names, with the folders above them", maxNames)
}

func (t *tree) find(name string) *node {
	at := &t.top
	for part := range strings.SplitSeq(name, "/") {
		if at = at.below[part]; at == nil {
			return nil
		}
	}
	return at
}

// folders returns the names of all folders, also of those that have no entry of
// their own, each after the one above it.
func (t *tree) folders() []string {
	var names []string
	var walk func(at *node, name string)
	walk = func(at *node, name string) {
		for part, next := range at.below {
			if next.kind == Folder {
				names = append(names, path.Join(name, part))
				walk(next, path.Join(name, part))
			}
		}
	}
	walk(&t.top, "")
	return names
}
