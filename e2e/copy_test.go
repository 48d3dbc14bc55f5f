//go:build e2e

package e2e

import (
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCopy: the client copies folders in and out, byte for byte, and streams what is
// larger than the limit.
func TestCopy(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--archive-max-size", "1Mi")
	id := r.runs(t, sleeper())
	source, back := t.TempDir(), t.TempDir()
	data := noise(3 * mib)
	for _, err := range []error{
		os.Mkdir(filepath.Join(source, "d"), 0o755), os.WriteFile(filepath.Join(source, "d", "small"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(source, "large"), data, 0o600), os.Symlink("large", filepath.Join(source, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cp := func(from, to string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), suite.binary, "cp", "--address", r.address, from, to).CombinedOutput()
		if err != nil {
			t.Errorf("copying %s to %s: %v\n%s", from, to, err, out)
		}
		return string(out)
	}
	for _, out := range []string{
		cp(filepath.Join(source, "d"), id+":/tmp/in"), cp(source, id[:8]+":/tmp/all"), cp(id+":/tmp/all", filepath.Join(back, "new")), cp(id+":/tmp/in/small", back),
	} {
		if out != "" {
			t.Errorf("it says %q", out)
		}
	}
	if got := r.inside(t, id, "cat /tmp/in/small && readlink /tmp/all/link && md5sum </tmp/all/large"); got != fmt.Sprintf("xlarge\n%x  -", md5.Sum(data)) {
		t.Errorf("in the container is %s", got)
	}
	if diff, err := exec.CommandContext(t.Context(), "diff", "-r", "--no-dereference", source, filepath.Join(back, "new")).CombinedOutput(); err != nil {
		t.Errorf("what came back differs: %s", diff)
	}
	if got, err := os.ReadFile(filepath.Join(back, "small")); err != nil || string(got) != "x" {
		t.Errorf("the file that came back: %q, %v", got, err)
	}
}
