package files

import (
	"archive/tar"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

// TestPut: what is in an archive is then in the folder, with its mode, whatever
// shell and tar an image has.
func TestPut(t *testing.T) {
	for name, image := range images(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(openDir(t), "made", "as needed")
			odd := []string{"-rf", " ", "a\nb", "\n", "*", `\`, `\n`, "$(touch x)", "'\"", "ü", "~", "=x", "+x", "!", strings.Repeat("n", 250)}
			headers := []*tar.Header{
				folder("./"), folder("d"), file("d/f"), link("l", "/etc"), link("m", "d/f"), hardLink("h", "d/f"), file("implied/by/f"),
				{Typeflag: tar.TypeReg, Name: "setuid", Size: 6, Mode: 0o6711, ModTime: then},
				{Typeflag: tar.TypeDir, Name: "sticky", Mode: 0o1777, ModTime: then},
			}
			want := map[string]string{
				"d": "drwxr-xr-x", "d/f": "-rw-r--r-- d/f", "l": "Lrwxrwxrwx -> /etc", "m": "Lrwxrwxrwx -> d/f", "h": "-rw-r--r-- d/f",
				"implied": "drwxr-xr-x", "implied/by": "drwxr-xr-x", "implied/by/f": "-rw-r--r-- implied/by/f",
				"setuid": "ugrwx--x--x setuid", "sticky": "dtrwxrwxrwx",
			}
			for _, n := range odd {
				headers = append(headers, folder(n), file(n+"/f"))
				want[n], want[n+"/f"] = "drwxr-xr-x", "-rw-r--r-- "+n+"/f"
			}
			payload := pack(t, headers...)
			for range 2 { // what is there is replaced
				if err := image.put(t, dir, payload); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, show(t, dir)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
			info, err := os.Stat(filepath.Join(dir, "d/f"))
			if err != nil || !info.ModTime().Equal(then) {
				t.Errorf("it is of %v, %v", info.ModTime(), err)
			}
		})
	}
}

// TestOwners: root gives files the owners that the archive has, by number; another
// user owns all.
func TestOwners(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	f := file("f")
	f.Mode = 0o666
	f.Uid, f.Gid, f.Uname, f.Gname = 1234, 5678, "root", "root"
	for name, image := range images(t) {
		for _, user := range []uint32{0, 12345} {
			image.user = user
			dir := openDir(t)
			if err := image.put(t, dir, pack(t, f)); err != nil {
				t.Errorf("%s, user %d: %v", name, user, err)
				continue
			}
			info, err := os.Stat(filepath.Join(dir, "f"))
			if err != nil {
				t.Fatal(err)
			}
			owner := info.Sys().(*syscall.Stat_t)
			want, mode := [2]uint32{1234, 5678}, os.FileMode(0o666)
			if user > 0 {
				want = [2]uint32{user, user}
				if !strings.HasSuffix(name, "and tar") {
					mode = 0o644 // busybox takes the umask off, unless it is root
				}
			}
			if got := [2]uint32{owner.Uid, owner.Gid}; got != want || info.Mode() != mode {
				t.Errorf("%s, user %d: the owner is %v, the mode %v", name, user, got, info.Mode())
			}
		}
	}
}

// TestLinksThatAreThere lead nothing out: neither an entry, nor the mode of a folder.
func TestLinksThatAreThere(t *testing.T) {
	for name, c := range map[string]struct {
		at      string
		headers []*tar.Header
		refused bool
	}{
		"a file behind one":         {"link", []*tar.Header{file("ok"), file("link/x")}, true},
		"a file far behind one":     {"link", []*tar.Header{file("link/deep/x")}, true},
		"a folder in its place":     {"link", []*tar.Header{{Typeflag: tar.TypeDir, Name: "link", Mode: 0o777}}, true},
		"a deep one":                {"d/link", []*tar.Header{file("d/link/x")}, true},
		"one with a line break":     {"a\nb", []*tar.Header{file("a\nb/x")}, true},
		"one of an odd name":        {"-L", []*tar.Header{file("-L/x")}, true},
		"a link behind one":         {"link", []*tar.Header{link("link/x", "y")}, true},
		"a hard link behind one":    {"link", []*tar.Header{file("f"), hardLink("link/x", "f")}, true},
		"a file in its place":       {"link", []*tar.Header{file("link")}, false},
		"another link in its place": {"link", []*tar.Header{link("link", "x")}, false},
		"beside one":                {"link", []*tar.Header{file("x"), file("link2/x")}, false},
	} {
		for which, image := range images(t) {
			t.Run(name+"/"+which, func(t *testing.T) {
				root := openDir(t)
				outside, dir := filepath.Join(root, "outside"), filepath.Join(root, "dir")
				for _, err := range []error{
					os.MkdirAll(outside, 0o700), os.MkdirAll(filepath.Join(dir, "d"), 0o755),
					os.WriteFile(filepath.Join(outside, "x"), []byte("as it was"), 0o600), os.Symlink(outside, filepath.Join(dir, c.at)),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
				before, all := show(t, outside), show(t, root)
				err := image.put(t, dir, pack(t, c.headers...))
				if c.refused {
					wantDomain(t, err, workload.FailedPrecondition, "archive_through_link", fmt.Sprintf("in the container %q", c.at))
					before, outside = all, root
				} else if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(before, show(t, outside)); diff != "" {
					t.Errorf("it changed (-before +after):\n%s", diff)
				}
				if info, err := os.Stat(filepath.Join(root, "outside")); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("the mode outside: %v, %v", info.Mode(), err)
				}
			})
		}
	}
}

// TestRandom unpacks archives of all sorts over one another: whatever is refused or
// not, and whatever links they leave behind, nothing changes outside.
func TestRandom(t *testing.T) {
	const rounds = 80
	names := []string{"a", "b", "a/b", "b/a", "a/b/c", "./a", "a//b", "..", "../outside", "../outside/x", "/etc/x", "c", "b/c", "."}
	targets := []string{"..", "../outside", ".", "a", "b", "/", "../..", "b/c"}
	for which, image := range images(t) {
		t.Run(which, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			pick := func(of []string) string { return of[random.IntN(len(of))] }
			root := openDir(t)
			outside, dir := filepath.Join(root, "outside"), filepath.Join(root, "dir")
			unpacked := 0
			for range rounds {
				if random.IntN(4) == 0 {
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(filepath.Join(outside, "b"), 0o755)); err != nil {
					t.Fatal(err)
				}
				before := show(t, outside)
				var headers []*tar.Header
				for range 1 + random.IntN(4) {
					switch name := pick(names); random.IntN(4) {
					case 0:
						headers = append(headers, folder(name))
					case 1:
						headers = append(headers, link(name, pick(targets)))
					case 2:
						headers = append(headers, hardLink(name, pick(names)))
					default:
						headers = append(headers, file(name))
					}
				}
				if image.put(t, dir, pack(t, headers...)) == nil {
					unpacked++
				}
				if diff := cmp.Diff(before, show(t, outside)); diff != "" {
					t.Fatalf("after %v outside changed (-before +after):\n%s", headers, diff)
				}
				if entries, err := os.ReadDir(root); err != nil || len(entries) != 2 {
					t.Fatalf("after %v there is more outside: %v, %v", headers, entries, err)
				}
			}
			if unpacked < rounds/10 {
				t.Errorf("only %d of %d archives were unpacked", unpacked, rounds)
			}
		})
	}
}
