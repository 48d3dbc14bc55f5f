package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agynio/k8s-runner/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// image stands for what an image has: a shell, and programs on a PATH.
type image struct {
	shell []string
	path  string
	// user is 0 for the one that runs the tests.
	user uint32
}

// images are those that this machine has the parts for.
func images(t *testing.T) map[string]image {
	t.Helper()
	found := map[string]image{}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Log("there is no busybox")
	}
	for _, shell := range []string{"dash", "bash", "mksh", "ksh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		if exec.Command("tar", "--version").Run() == nil {
			found[shell+" and tar"] = image{shell: []string{path}, path: os.Getenv("PATH")}
		}
		if busybox != "" {
			found[shell+" and busybox"] = image{shell: []string{path}, path: bin(t, busybox, "tar", "dd", "mkdir")}
			found[shell+" without dd"] = image{shell: []string{path}, path: bin(t, busybox, "tar", "mkdir")}
		}
	}
	if busybox != "" {
		found["busybox"] = image{shell: []string{busybox, "sh"}, path: bin(t, busybox, "tar", "dd", "mkdir")}
	}
	if len(found) == 0 {
		t.Skip("there is no shell with a tar")
	}
	return found
}

// bin is a folder with busybox under the names of programs.
func bin(t *testing.T, busybox string, names ...string) string {
	t.Helper()
	dir := openDir(t)
	for _, name := range names {
		if err := os.Symlink(busybox, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// openDir is a temporary folder that every user can read.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "files-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a program as in a container of the image.
func (i image) run(ctx context.Context, _ workload.Target, argv []string, stdin io.Reader) (Result, error) {
	var stdout, stderr bytes.Buffer
	words := append(slices.Clone(i.shell), argv[1:]...)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = []string{"PATH=" + i.path, "TAR_OPTIONS=--exclude=*", "CDPATH=/etc"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdin, &stdout, &stderr, 10*time.Second
	if i.user > 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: i.user, Gid: i.user}}
	}
	err := cmd.Run()
	result := Result{Code: int32(cmd.ProcessState.ExitCode()), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	return result, err
}

func (i image) put(t *testing.T, folder string, payload []byte) error {
	t.Helper()
	return NewPutter(i.run).Put(t.Context(), workload.Target{ID: "id"}, folder, payload)
}

var then = time.Unix(1_700_000_000, 0)

func folder(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, ModTime: then}
}

// file is one that holds its name.
func file(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(name)), ModTime: then}
}

func link(name, target string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: then}
}

func hardLink(name, target string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644, ModTime: then}
}

// pack makes an archive; files that are larger than their names have zeros, too.
func pack(t *testing.T, headers ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		content := make([]byte, h.Size)
		copy(content, h.Name)
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// show lists all that is below dir: type and mode, what is in it, where it leads.
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
		what := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what = " " + strings.TrimRight(string(data), "\x00")
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what = " -> " + target
		}
		all[strings.TrimPrefix(path, dir+"/")] = info.Mode().String() + what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantDomain(t *testing.T, err error, kind workload.Kind, token, says string) {
	t.Helper()
	var domain *workload.Error
	if !errors.As(err, &domain) || domain.Kind != kind || domain.Token != token || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("got %v, want %s with %q", err, token, says)
	}
}
