package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
)

// inode is a file, a folder or a link of a model of a file system, in which "/base"
// is where archives are unpacked.
type inode struct {
	below  map[string]*inode // of a folder
	target string            // of a link
	inside bool
}

type model struct {
	root, base *inode
	// escapes are what was written outside.
	escapes []string
	// links is how many were followed on one way; a kernel gives up after 40.
	links int
}

func newModel() *model {
	dir := func(inside bool) *inode { return &inode{below: map[string]*inode{}, inside: inside} }
	m := &model{root: dir(false), base: dir(true)}
	etc := dir(false)
	etc.below["x"], etc.below["a"] = &inode{}, dir(false)
	m.root.below["etc"], m.root.below["base"] = etc, m.base
	return m
}

// walk goes from at along name as a kernel does, and makes folders that are missing
// if it may. It returns nil where there is no way.
func (m *model) walk(at *inode, name string, make bool) *inode {
	m.links = 0
	return m.follow(at, name, make)
}

func (m *model) follow(at *inode, name string, make bool) *inode {
	if path.IsAbs(name) {
		at = m.root
	}
	stack := m.above(at)
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			at = stack[len(stack)-1]
			continue
		}
		next := at.below[part]
		if next == nil {
			if !make || at.below == nil {
				return nil
			}
			m.wrote(at, "a folder "+part)
			next = &inode{below: map[string]*inode{}, inside: at.inside}
			at.below[part] = next
		}
		if next.target != "" {
			if m.links++; m.links > 40 {
				return nil
			}
			if next = m.follow(at, next.target, make); next == nil {
				return nil
			}
			stack = m.above(next)
		} else {
			stack = append(stack, next)
		}
		at = next
	}
	return at
}

// above is the way from the root to a folder.
func (m *model) above(at *inode) []*inode {
	var find func(way []*inode) []*inode
	find = func(way []*inode) []*inode {
		last := way[len(way)-1]
		if last == at {
			return way
		}
		for _, next := range last.below {
			if found := find(append(way[:len(way):len(way)], next)); found != nil {
				return found
			}
		}
		return nil
	}
	return find([]*inode{m.root})
}

func (m *model) wrote(at *inode, what string) {
	if !at.inside {
		m.escapes = append(m.escapes, what)
	}
}

// put does what a careless tar does with an entry: it follows every link, but for
// the one in whose place it makes something.
func (m *model) put(h *tar.Header) {
	name := strings.TrimSuffix(h.Name, "/")
	if h.Typeflag == tar.TypeDir {
		if at := m.walk(m.base, name, true); at != nil {
			m.wrote(at, "the mode of "+h.Name)
		}
		return
	}
	parent := m.walk(m.base, path.Dir(name), true)
	last := path.Base(name)
	if parent == nil || parent.below == nil {
		return
	}
	if old := parent.below[last]; old != nil && old.below != nil {
		return // no tar replaces a folder that is not empty, and none of ours is
	}
	made := &inode{inside: true}
	switch h.Typeflag {
	case tar.TypeSymlink:
		made.target = h.Linkname
	case tar.TypeLink:
		from := m.walk(m.base, path.Dir(h.Linkname), false)
		if from == nil || from.below[path.Base(h.Linkname)] == nil {
			return
		}
		made = from.below[path.Base(h.Linkname)]
		if !made.inside {
			m.escapes = append(m.escapes, "a name of "+h.Linkname)
		}
	}
	m.wrote(parent, h.Name)
	parent.below[last] = made
}

// refuses does what the script in the container does.
func (m *model) refuses(folders []string) bool {
	for _, name := range folders {
		parent := m.walk(m.base, path.Dir(name), false)
		if parent != nil && parent.below[path.Base(name)] != nil && parent.below[path.Base(name)].target != "" {
			return true
		}
	}
	return false
}

// parse makes an archive of lines: f NAME, d NAME, l NAME TARGET, h NAME TARGET; and
// p NAME TARGET is a link that is in the folder already.
// It reports false for what no program writes.
func parse(script string, m *model) ([]byte, bool) {
	var headers []*tar.Header
	for line := range strings.Lines(script) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, target, _ := strings.Cut(rest, " ")
		switch kind {
		case "f":
			headers = append(headers, with(file(name), func(h *tar.Header) { h.Size = 0 }))
		case "d":
			headers = append(headers, folder(name))
		case "l":
			headers = append(headers, link(name, target))
		case "h":
			headers = append(headers, hardLink(name, target))
		case "p":
			clean, _, problem := clean(name)
			if parent := m.walk(m.base, path.Dir(clean), false); problem == "" && clean != "." && target != "" && parent != nil && parent.inside && parent.below != nil {
				parent.below[path.Base(clean)] = &inode{target: target, inside: true}
			}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			return nil, false
		}
	}
	return out.Bytes(), w.Close() == nil
}

// escapes go out of the folder, if nobody looks.
var escapes = []string{
	"f ../x", "f /etc/x", "l a /etc\nf a/x", "l b ..\nl a b\nf a/etc/x", "l a /etc\nh b a\nf b/x", "h a ../etc/x", "l a /etc\nd a",
	"p a /etc\nf a/x", "p a ..\nd a", "d d\nl d/a ../..\nf d/a/etc/x", "p a /etc\nf b\nh a/b b", "p d /\nf d/etc/b",
	"l ./a /etc\nf a//x", "d d\nl d/a ..\nl b d/a/..\nf b/x",
}

// nearly do not, or not with every tar.
var nearly = []string{
	"f a/x\nl a /etc", "d a\nl a /etc", "l a /etc\nf a\nf a/x", "p a /etc\nf a", "p a /etc\nl a b\nf b/x", "d .\nl . /etc", "l a /etc/x\nf a",
	"p a .\nf a/x", "f a\nh b a\nf b", "l a a\nf a/a", "d etc\nl a etc\nf a/x", "p a /etc\nf b\nh a b",
}

// FuzzEscape unpacks archives in a model of a file system: whatever passes writes
// nothing outside, also if links are made last, and whatever links there were before.
func FuzzEscape(f *testing.F) {
	for _, script := range append(escapes, nearly...) {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, linksLast := range []bool{false, true} {
			m := newModel()
			payload, ok := parse(script, m)
			if !ok {
				return
			}
			a, err := Open(payload, "p")
			if err != nil || m.refuses(a.Folders()) {
				return
			}
			var out bytes.Buffer
			if _, err := a.WriteTo(&out); err != nil {
				t.Fatal(err)
			}
			var late []*tar.Header
			for r := tar.NewReader(&out); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if linksLast && (h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink) {
					late = append(late, h)
					continue
				}
				m.put(h)
			}
			for _, h := range late {
				m.put(h)
			}
			if len(m.escapes) > 0 {
				t.Errorf("outside are written: %q", m.escapes)
			}
		}
	})
}

// TestModelSees: without any check the model finds what goes out.
func TestModelSees(t *testing.T) {
	for _, script := range escapes {
		m := newModel()
		payload, ok := parse(script, m)
		if !ok {
			t.Errorf("%q is no archive", script)
		}
		r := tar.NewReader(bytes.NewReader(payload))
		for h, err := r.Next(); err == nil; h, err = r.Next() {
			m.put(h)
		}
		if len(m.escapes) == 0 {
			t.Errorf("it sees nothing wrong with %q", script)
		}
	}
}

// FuzzOpen reads any bytes: what passes is written anew and is then the same.
func FuzzOpen(f *testing.F) {
	f.Add(pack(f, folder("d"), file("d/f"), link("l", "d"), hardLink("h", "d/f")))
	f.Add(pack(f, with(file(strings.Repeat("n", 300)), func(h *tar.Header) { h.Format, h.Size = tar.FormatGNU, 1 })))
	f.Add(pack(f, with(file("f"), func(h *tar.Header) { h.Format, h.PAXRecords = tar.FormatPAX, map[string]string{"comment": "c"} })))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, err := Open(payload, "p")
		if err != nil {
			return
		}
		var out, again bytes.Buffer
		if _, err := a.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		b, err := Open(out.Bytes(), "p")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.WriteTo(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("what was written anew is read as something else (%v)", err)
		}
	})
}
