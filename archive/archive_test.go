package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

// TestAccepts: what stays below the folder, in one form however it is written.
func TestAccepts(t *testing.T) {
	long := strings.Repeat("d/", 120) + "f"
	at := func(e Entry) Entry {
		e.ModTime = then
		if e.Mode == 0 {
			e.Mode = 0o644
		}
		if e.Kind == File && e.Size == 0 {
			e.Size = int64(len(contentOf(e.Name)))
		}
		return e
	}
	for name, c := range map[string]struct {
		headers []*tar.Header
		want    []Entry
	}{
		"nothing":      {nil, nil},
		"a file":       {[]*tar.Header{file("f")}, []Entry{at(Entry{Kind: File, Name: "f"})}},
		"the folder":   {[]*tar.Header{folder("./")}, []Entry{at(Entry{Kind: Folder, Name: ".", Mode: 0o755})}},
		"untidy names": {[]*tar.Header{folder("./a//b/./"), with(file("a//b/.//c"), func(h *tar.Header) { h.Size = 7 })}, []Entry{at(Entry{Kind: Folder, Name: "a/b", Mode: 0o755}), at(Entry{Kind: File, Name: "a/b/c", Size: 7})}},
		"dots that lead nowhere": {[]*tar.Header{file("..a"), file("a.."), file("...")}, []Entry{
			at(Entry{Kind: File, Name: "..a"}), at(Entry{Kind: File, Name: "a.."}), at(Entry{Kind: File, Name: "..."}),
		}},
		"odd names": {[]*tar.Header{file("-rf"), file(" "), file("a\nb"), file("ü"), file("\xff"), file(`a\..\b`), file("$(x)'\"")}, []Entry{
			at(Entry{Kind: File, Name: "-rf"}), at(Entry{Kind: File, Name: " "}), at(Entry{Kind: File, Name: "a\nb"}), at(Entry{Kind: File, Name: "ü"}),
			at(Entry{Kind: File, Name: "\xff"}), at(Entry{Kind: File, Name: `a\..\b`}), at(Entry{Kind: File, Name: "$(x)'\""}),
		}},
		"long names": {[]*tar.Header{file(long)}, []Entry{at(Entry{Kind: File, Name: long})}},
		"long names of GNU": {
			[]*tar.Header{with(link(strings.Repeat("n", 200), strings.Repeat("t", 200)), func(h *tar.Header) { h.Format = tar.FormatGNU })},
			[]Entry{at(Entry{Kind: Symlink, Name: strings.Repeat("n", 200), Target: strings.Repeat("t", 200), Mode: 0o777})},
		},
		"bits, owners, an old time": {[]*tar.Header{with(file("f"), func(h *tar.Header) {
			h.Mode, h.Uid, h.Gid, h.Uname, h.ModTime = 0o6755, 1000, 3_000_000_000, "somebody", time.Unix(-5, 0)
		})}, []Entry{{Kind: File, Name: "f", Size: 12, Mode: 0o6755, UID: 1000, GID: 3_000_000_000, ModTime: time.Unix(-5, 0)}}},
		"links that nothing goes through": {[]*tar.Header{link("a", "/etc"), link("b", "../.."), link("d/c", "a")}, []Entry{
			at(Entry{Kind: Symlink, Name: "a", Target: "/etc", Mode: 0o777}), at(Entry{Kind: Symlink, Name: "b", Target: "../..", Mode: 0o777}),
			at(Entry{Kind: Symlink, Name: "d/c", Target: "a", Mode: 0o777}),
		}},
		"a hard link":        {[]*tar.Header{file("d/f"), hardLink("h", "./d//f")}, []Entry{at(Entry{Kind: File, Name: "d/f"}), at(Entry{Kind: HardLink, Name: "h", Target: "d/f"})}},
		"a file twice":       {[]*tar.Header{file("f"), file("f")}, []Entry{at(Entry{Kind: File, Name: "f"}), at(Entry{Kind: File, Name: "f"})}},
		"a folder twice":     {[]*tar.Header{file("d/f"), folder("d")}, []Entry{at(Entry{Kind: File, Name: "d/f"}), at(Entry{Kind: Folder, Name: "d", Mode: 0o755})}},
		"a comment for all":  {[]*tar.Header{{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": "c"}}, file("f")}, []Entry{at(Entry{Kind: File, Name: "f"})}},
		"an old folder":      {[]*tar.Header{with(folder("d/"), func(h *tar.Header) { h.Typeflag = tar.TypeRegA })}, []Entry{at(Entry{Kind: Folder, Name: "d", Mode: 0o755})}}, //nolint:staticcheck // that is what is old
		"a name of nothing.": {[]*tar.Header{file("./f/.")}, []Entry{at(Entry{Kind: File, Name: "f", Size: 16})}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Open(pack(t, c.headers...), "p")
			if err != nil {
				t.Fatal(err)
			}
			var got []Entry
			for _, e := range a.entries {
				got = append(got, e.Entry)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if a.Empty() != (len(c.want) == 0) {
				t.Errorf("it says that it is empty: %v", a.Empty())
			}
		})
	}
}

// TestRefuses names every entry that is at fault, and no other.
func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		headers []*tar.Header
		want    map[string]string
	}{
		"an absolute name":        {[]*tar.Header{file("/etc/x"), file("ok")}, map[string]string{`p["/etc/x"]`: Outside}},
		"a way up":                {[]*tar.Header{file("../x"), file("a/../../x"), file("a/.."), folder("..")}, map[string]string{`p["../x"]`: Outside, `p["a/../../x"]`: Outside, `p["a/.."]`: Outside, `p[".."]`: Outside}},
		"a way up and back":       {[]*tar.Header{file("a/../x")}, map[string]string{`p["a/../x"]`: Outside}},
		"a way up, long":          {[]*tar.Header{file("../" + strings.Repeat("x", 90) + "/" + strings.Repeat("y", 90))}, map[string]string{`p["../` + strings.Repeat("x", 90) + `/yyyyyy"…]`: Outside}},
		"through a link":          {[]*tar.Header{link("link", "/etc"), file("link/x")}, map[string]string{`p["link/x"]`: Outside}},
		"through a link within":   {[]*tar.Header{folder("d"), link("link", "d"), file("link/x")}, map[string]string{`p["link/x"]`: Outside}},
		"through two links":       {[]*tar.Header{link("b", ".."), link("a", "b"), file("a/x")}, map[string]string{`p["a/x"]`: Outside}},
		"deep through a link":     {[]*tar.Header{link("d/link", "/etc"), file("d/link/e/x")}, map[string]string{`p["d/link/e/x"]`: Outside}},
		"untidy through a link":   {[]*tar.Header{link("./d/./link/", "/etc"), file("d//link//x")}, map[string]string{`p["d//link//x"]`: Outside}},
		"before a link":           {[]*tar.Header{file("link/x"), link("link", "/etc")}, map[string]string{`p["link"]`: Outside}},
		"a link and a folder":     {[]*tar.Header{link("d", "/etc"), folder("d")}, map[string]string{`p["d"]`: Outside}},
		"a folder and a link":     {[]*tar.Header{folder("d"), link("d", "/etc")}, map[string]string{`p["d"]`: Outside}},
		"a link and a file":       {[]*tar.Header{link("f", "/etc/passwd"), file("f")}, map[string]string{`p["f"]`: Invalid}},
		"a link twice":            {[]*tar.Header{link("f", "a"), link("f", "b")}, map[string]string{`p["f"]`: Invalid}},
		"a link by a hard link":   {[]*tar.Header{link("a", "/etc"), hardLink("b", "a"), file("b/x")}, map[string]string{`p["b"]`: Invalid}},
		"a hard link out":         {[]*tar.Header{hardLink("a", "/etc/passwd"), hardLink("b", "../x"), hardLink("c", "nothing"), hardLink("d", "")}, map[string]string{`p["a"]`: Outside, `p["b"]`: Outside, `p["c"]`: Invalid, `p["d"]`: Invalid}},
		"a hard link through one": {[]*tar.Header{link("l", "/etc"), hardLink("a", "l/passwd")}, map[string]string{`p["a"]`: Invalid}},
		"a hard link to a folder": {[]*tar.Header{folder("d"), hardLink("a", "d")}, map[string]string{`p["a"]`: Invalid}},
		"a hard link to itself":   {[]*tar.Header{file("f"), hardLink("f", "f")}, map[string]string{`p["f"]`: Invalid}},
		"a shared file again":     {[]*tar.Header{file("f"), hardLink("h", "f"), file("f"), file("h")}, map[string]string{`p["f"]`: Invalid, `p["h"]`: Invalid}},
		"a file that is above":    {[]*tar.Header{file("f"), file("f/x")}, map[string]string{`p["f/x"]`: Invalid}},
		"a file for a folder":     {[]*tar.Header{folder("d"), file("d")}, map[string]string{`p["d"]`: Invalid}},
		"the folder as something": {[]*tar.Header{file("."), link("./.", "x")}, map[string]string{`p["."]`: Invalid, `p["./."]`: Invalid}},
		"devices and pipes":       {[]*tar.Header{special("c", tar.TypeChar), special("b", tar.TypeBlock), special("p", tar.TypeFifo), file("ok")}, map[string]string{`p["c"]`: Unsupported, `p["b"]`: Unsupported, `p["p"]`: Unsupported}},
		"a device outside":        {[]*tar.Header{special("/dev/sda", tar.TypeBlock)}, map[string]string{`p["/dev/sda"]`: Unsupported}},
		"unknown types":           {[]*tar.Header{special("x", 'Q'), special("y", tar.TypeCont)}, map[string]string{`p["x"]`: Unsupported, `p["y"]`: Unsupported}},
		"a link to nothing":       {[]*tar.Header{link("l", "")}, map[string]string{`p["l"]`: Invalid}},
		"a name that is too long": {[]*tar.Header{file(strings.Repeat("x/", 2048) + "x")}, map[string]string{`p["` + strings.Repeat("x/", 50) + `"…]`: Invalid}},
		"one path for all":        {[]*tar.Header{{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"path": "/etc/x"}}, file("f")}, map[string]string{`p["/etc/x"]`: Unsupported}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(pack(t, c.headers...), "p")
			if diff := cmp.Diff(c.want, tokens(err)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

// TestSparse refuses a file with holes in any form: what it holds is not what comes
// out of it.
func TestSparse(t *testing.T) {
	known := pack(t, with(file("s"), func(h *tar.Header) { h.PAXRecords = map[string]string{"XXX.sparse.major": "9"} }))
	old := pack(t, with(file("s"), func(h *tar.Header) { h.Format = tar.FormatGNU }))
	old[156] = tar.TypeGNUSparse
	sum := 0
	copy(old[148:156], "        ")
	for _, b := range old[:block] {
		sum += int(b)
	}
	copy(old[148:156], fmt.Sprintf("%06o\x00 ", sum))
	for name, payload := range map[string][]byte{"of POSIX": bytes.Replace(known, []byte("XXX"), []byte("GNU"), 1), "of GNU": old} {
		if diff := cmp.Diff(map[string]string{`p["s"]`: Unsupported}, tokens(second(Open(payload, "p")))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCutOff cuts an archive after each of its blocks and within: whatever is
// missing is noticed, also if it is whole entries.
func TestCutOff(t *testing.T) {
	whole := pack(t, folder("d"), file("d/a"), file("d/b"), link("l", "a"))
	entries := len(whole) - 2*block
	for n := range len(whole) + 1 {
		_, err := Open(whole[:n], "p")
		want := map[string]string{"": "archive_truncated"}
		// One of the two blocks of zeros says it all, as tar has it.
		if n == entries+block || n == len(whole) {
			want = map[string]string{"": "<nil>"}
		}
		if diff := cmp.Diff(want, tokens(err)); diff != "" {
			t.Fatalf("after %d of %d bytes (-want +got):\n%s", n, len(whole), diff)
		}
	}
	if _, err := Open(slices.Concat(whole, []byte("what follows the end is nobody's")), "p"); err != nil {
		t.Errorf("with something behind its end: %v", err)
	}
}

// TestZeros: content of zeros is no end.
func TestZeros(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: 4 * block}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 4*block)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"": "archive_truncated"}, tokens(second(Open(out.Bytes(), "p")))); diff != "" {
		t.Error(diff)
	}
}

func second[T any](_ T, err error) error { return err }

// TestNoArchive says what it is, where it can be told.
func TestNoArchive(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(pack(t, file("f"))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := pack(t, file("a"), file("b"))
	damaged[2*block] ^= 1
	for name, c := range map[string]struct {
		payload     []byte
		token, says string
	}{
		"gzip":           {zipped.Bytes(), "invalid_archive", "gzip"},
		"a short gzip":   {[]byte("\x1f\x8b\x08"), "invalid_archive", "gzip"},
		"zip":            {[]byte("PK\x03\x04" + strings.Repeat("x", 1000)), "invalid_archive", "zip"},
		"zstd":           {[]byte("\x28\xb5\x2f\xfd" + strings.Repeat("x", 1000)), "invalid_archive", "zstd"},
		"text":           {[]byte(strings.Repeat("a", 1000)), "invalid_archive", "byte 0 "},
		"a damaged one":  {damaged, "invalid_archive", "byte 1024 "},
		"nothing at all": {nil, "archive_truncated", "0 bytes"},
	} {
		_, err := Open(c.payload, "p")
		if diff := cmp.Diff(map[string]string{"": c.token}, tokens(err)); diff != "" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s (-want +got):\n%s%v", name, diff, err)
		}
	}
}

// TestManyFaults: an archive of nothing but faults is examined to a bound.
func TestManyFaults(t *testing.T) {
	var headers []*tar.Header
	for range 2 * maxFaults {
		headers = append(headers, file("../x"))
	}
	var domain *workload.Error
	if _, err := Open(pack(t, headers...), "p"); !errors.As(err, &domain) || len(domain.Violations) != maxFaults {
		t.Errorf("%v", err)
	}
}

// TestDeepNames: few entries with very deep names use no more memory than many.
func TestDeepNames(t *testing.T) {
	var headers []*tar.Header
	deep := strings.Repeat("x/", 2000)
	for i := range maxNames/2000 + 2 {
		headers = append(headers, folder(string(rune('a'+i/26))+string(rune('a'+i%26))+"/"+deep))
	}
	_, err := Open(pack(t, headers...), "p")
	if got := tokens(err); len(got) == 0 || !strings.Contains(err.Error(), "one too many") {
		t.Errorf("%v", got)
	}
}

// TestWriteTo: what is written has the same entries, in blocks, and reads as
// itself.
func TestWriteTo(t *testing.T) {
	headers := []*tar.Header{
		folder("./"), folder("d"), file("d/a"), link("l", "/etc"), hardLink("h", "d/a"),
		with(file(strings.Repeat("long/", 60)+"f"), func(h *tar.Header) { h.Size = 700 % int64(len(contentOf(h.Name))) }),
		with(file("pax"), func(h *tar.Header) {
			h.Format, h.ModTime, h.Uname, h.PAXRecords = tar.FormatPAX, then.Add(time.Millisecond), "root", map[string]string{"SCHILY.xattr.user.x": "y"}
		}),
	}
	a, err := Open(pack(t, headers...), "p")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	n, err := a.WriteTo(&out)
	if err != nil || n != int64(out.Len()) || n%Record != 0 {
		t.Fatalf("%d bytes of %d, %v", n, out.Len(), err)
	}
	r := tar.NewReader(&out)
	for i, want := range headers {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if want.Typeflag == tar.TypeReg && string(content) != contentOf(want.Name)[:want.Size] {
			t.Errorf("%s holds %q", h.Name, content)
		}
		if h.Format != tar.FormatGNU || h.Typeflag != want.Typeflag || h.Linkname != want.Linkname || h.Uname != "" || !h.ModTime.Equal(then) ||
			h.PAXRecords != nil || h.Mode != want.Mode || strings.Trim(h.Name, "./") != strings.Trim(want.Name, "./") {
			t.Errorf("entry %d is %+v", i, h)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more: %v", err)
	}
}

func TestFolders(t *testing.T) {
	a, err := Open(pack(t, folder("."), file("a/b/c"), folder("a/d"), link("a/l", "x"), file("f")), "p")
	if err != nil {
		t.Fatal(err)
	}
	got := a.Folders()
	if got[0] != "a" {
		t.Errorf("the first is %s", got[0])
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "a/b", "a/d"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
