package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show lists all that is below dir: mode, what is in it, where it leads.
func show(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + string(data)
		} else if target, err := os.Readlink(path); err == nil {
			what += " -> " + target
		}
		all[strings.TrimPrefix(path, dir+"/")] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(name string) (string, error) { return name, nil }

// unpack unpacks in dir and returns what was skipped.
func unpack(t *testing.T, dir string, payload []byte) (skipped []string, err error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	u := &Unpacker{Root: root, Rename: same, Skipped: func(name, _ string) { skipped = append(skipped, name) }}
	return skipped, u.Unpack(NewReader(bytes.NewReader(payload)))
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	skipped, err := unpack(t, dir, pack(t,
		with(folder("closed"), func(h *tar.Header) { h.Mode = 0o555 }), file("closed/f"), link("closed/up", "../f"), link("deep/er/l", "../.."),
		with(file("f"), func(h *tar.Header) { h.Mode = 0o7755 }), hardLink("h", "f"),
		link("etc", "/etc"), link("out", ".."), link("d/out", "../../x"), link("d/in/and", "../in/../.."), link("d/back", "in/.."), special("dev", tar.TypeChar), file("last"),
	))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"closed": "dr-xr-xr-x", "closed/f": "-rw-r--r-- content of closed/f", "closed/up": "Lrwxrwxrwx -> ../f", "deep": "drwxr-xr-x", "deep/er": "drwxr-xr-x",
		"deep/er/l": "Lrwxrwxrwx -> ../..", "f": "-rwxr-xr-x content of f", "h": "-rwxr-xr-x content of f", "last": "-rw-r--r-- content of last",
	}
	if diff := cmp.Diff(want, show(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"etc", "out", "d/out", "d/in/and", "d/back", "dev"}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(dir, "f")); err != nil || !info.ModTime().Equal(then) {
		t.Errorf("it is of %v, %v", info.ModTime(), err)
	}
	if err := os.Chmod(filepath.Join(dir, "closed"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestUnpackOver replaces files and links, and leaves the folders of the user alone.
func TestUnpackOver(t *testing.T) {
	root := t.TempDir()
	dir, outside := filepath.Join(root, "dir"), filepath.Join(root, "outside")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "private"), 0o700), os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "f"), []byte("as it was"), 0o600),
		os.WriteFile(filepath.Join(dir, "f"), []byte("old, and longer than the new"), 0o600), os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "l")),
		os.Symlink("../outside", filepath.Join(dir, "way")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := show(t, outside)
	if _, err := unpack(t, dir, pack(t, with(folder("."), func(h *tar.Header) { h.Mode = 0o777 }),
		with(folder("private"), func(h *tar.Header) { h.Mode = 0o777 }), file("f"), file("l"))); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"f": "-rw-r--r-- content of f", "l": "-rw-r--r-- content of l", "private": "drwx------", "way": "Lrwxrwxrwx -> ../outside",
	}
	if diff := cmp.Diff(want, show(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A link of the user's own that leads out is no way, either.
	for _, h := range []*tar.Header{file("way/f"), file("way/new"), folder("way/new"), with(folder("way"), func(h *tar.Header) { h.Mode = 0o777 }), link("way/l", "f")} {
		if _, err := unpack(t, dir, pack(t, h)); err == nil {
			t.Errorf("%s is unpacked", h.Name)
		}
	}
	if _, err := unpack(t, dir, pack(t, file("private"))); err == nil {
		t.Error("a file takes the place of a folder")
	}
	if diff := cmp.Diff(before, show(t, outside)); diff != "" {
		t.Errorf("outside (-before +after):\n%s", diff)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("outside: %v, %v", info.Mode(), err)
	}
}

// TestUnpackRefuses ends at what would leave the folder, and at what is cut off.
func TestUnpackRefuses(t *testing.T) {
	whole := pack(t, file("a"), file("b"))
	for name, payload := range map[string][]byte{
		"a way up":       pack(t, file("a"), file("../b")),
		"through a link": pack(t, file("a"), link("l", ".."), file("l/b")),
		"cut between":    whole[:2*block],
		"cut within":     whole[:3*block+8],
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "dir")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(t, dir, payload); err == nil {
			t.Errorf("%s: no error", name)
		}
		got := show(t, root)
		delete(got, "dir")
		if diff := cmp.Diff(map[string]string{"dir/a": "-rw-r--r-- content of a"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestFuzzedEscapesHere unpacks all known escapes on this machine.
func TestFuzzedEscapesHere(t *testing.T) {
	for _, script := range append(escapes, nearly...) {
		root := t.TempDir()
		base := filepath.Join(root, "base")
		if err := errors.Join(os.Mkdir(base, 0o755), os.MkdirAll(filepath.Join(root, "etc", "b"), 0o755)); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(script) {
			if words := strings.Fields(line); words[0] == "p" {
				_ = os.Symlink(strings.Replace(words[2], "/etc", "../etc", 1), filepath.Join(base, words[1])) // some need a folder first
			}
		}
		before := show(t, filepath.Join(root, "etc"))
		payload, _ := parse(script, newModel())
		_, _ = unpack(t, base, payload) // whatever it says
		if diff := cmp.Diff(before, show(t, filepath.Join(root, "etc"))); diff != "" {
			t.Errorf("%q (-before +after):\n%s", script, diff)
		}
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 2 {
			t.Errorf("%q: outside are %v, %v", script, entries, err)
		}
	}
}

// TestPack: what is packed is unpacked as it was.
func TestPack(t *testing.T) {
	source := t.TempDir()
	socket, err := net.Listen("unix", filepath.Join(source, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(source, "d", "empty"), 0o750), os.WriteFile(filepath.Join(source, "d", "f\n"), []byte("content"), 0o640),
		os.Symlink("d", filepath.Join(source, "l")), os.WriteFile(filepath.Join(source, strings.Repeat("n", 200)), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := show(t, source)
	delete(want, "socket")
	for name, c := range map[string]struct {
		name  string
		top   bool
		first string
		below string
	}{
		"as a name":  {"new", false, "new", "new"},
		"the inside": {".", false, "d", ""},
		"with top":   {".", true, ".", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var skipped []string
			p := &Packer{Skipped: func(name, _ string) { skipped = append(skipped, name) }}
			if err := p.Pack(&out, source+"/", c.name, c.top); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{filepath.Join(source, "socket")}, skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
			first, err := NewReader(bytes.NewReader(out.Bytes())).Peek()
			if err != nil || first.Name != c.first || first.UID != 0 || first.GID != 0 {
				t.Errorf("the first is %+v, %v", first, err)
			}
			dir := t.TempDir()
			if _, err := unpack(t, dir, out.Bytes()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, show(t, filepath.Join(dir, c.below))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPackOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(file, 1234, 5678); err != nil {
			t.Fatal(err)
		}
	}
	for owners, want := range map[bool][2]int{true: {1234, 5678}, false: {0, 0}} {
		var out bytes.Buffer
		if err := (&Packer{Owners: owners}).Pack(&out, file, "g", false); err != nil {
			t.Fatal(err)
		}
		r := NewReader(&out)
		e, err := r.Next()
		if err != nil || e.Kind != File || e.Name != "g" || os.Getuid() == 0 && [2]int{e.UID, e.GID} != want {
			t.Errorf("%+v, %v", e, err)
		}
		if content, err := io.ReadAll(r); err != nil || string(content) != "content" {
			t.Errorf("%q, %v", content, err)
		}
	}
	if err := (&Packer{}).Pack(io.Discard, file+"-absent", "g", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent one: %v", err)
	}
	if err := copyFile(io.Discard, file, 8); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("one that became shorter: %v", err)
	}
}

// TestRewrite copies entries with what they hold, and ends where one is refused.
func TestRewrite(t *testing.T) {
	payload := pack(t, folder("d"), file("d/f"), link("l", "d"))
	a, err := Open(payload, "p")
	if err != nil {
		t.Fatal(err)
	}
	var want, got bytes.Buffer
	if _, err := a.WriteTo(&want); err != nil {
		t.Fatal(err)
	}
	if err := Rewrite(&got, bytes.NewReader(payload)); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(want.Bytes(), got.Bytes()) || got.Len() < 4*block {
		t.Error("it differs from what WriteTo writes")
	}
	for _, wrong := range [][]byte{pack(t, file("../x")), payload[:len(payload)-2*block], payload[:2*block+1]} {
		if err := Rewrite(io.Discard, bytes.NewReader(wrong)); err == nil {
			t.Error("no error")
		}
	}
}
