package files

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

// TestCut cuts the archive at any place, where it is read or on its way to the
// program: that is never a success.
func TestCut(t *testing.T) {
	payload := pack(t, folder("d"), file("d/a"), &tar.Header{Typeflag: tar.TypeReg, Name: "b", Size: 30000, Mode: 0o644}, file("c"))
	const whole = int64(len("=d\n\n") + 40960) // the archive in records, and the names before it
	for which, image := range images(t) {
		for _, where := range []string{"read", "sent"} {
			if where == "sent" && strings.Contains(which, "without dd") {
				continue // nothing in such an image can tell
			}
			t.Run(which+" "+where, func(t *testing.T) {
				cut := int64(0)
				run := func(ctx context.Context, target workload.Target, argv []string, stdin io.Reader) (Result, error) {
					result, err := image.run(ctx, target, argv, io.LimitReader(stdin, cut))
					if where == "sent" {
						_, _ = io.Copy(io.Discard, stdin) // what is lost
					}
					return result, err
				}
				for cut = 0; cut < whole; cut += 4073 {
					if err := NewPutter(run).Put(t.Context(), workload.Target{}, openDir(t), payload); err == nil {
						t.Errorf("%d bytes are a success", cut)
					}
				}
				for _, cut = range []int64{whole - 10240, whole - 1, whole - 512} {
					if err := NewPutter(run).Put(t.Context(), workload.Target{}, openDir(t), payload); err == nil {
						t.Errorf("%d bytes are a success", cut)
					}
				}
				cut = whole + 1
				if err := NewPutter(run).Put(t.Context(), workload.Target{}, openDir(t), payload); err != nil {
					t.Errorf("the whole: %v", err)
				}
			})
		}
	}
}

// TestNotSent: what is refused never reaches the container, nor does nothing at all.
func TestNotSent(t *testing.T) {
	run := func(context.Context, workload.Target, []string, io.Reader) (Result, error) {
		t.Error("something was run")
		return Result{}, nil
	}
	whole := pack(t, file("a"), file("b"))
	for name, c := range map[string]struct {
		folder  string
		payload []byte
		token   string
	}{
		"an escape":     {"/w", pack(t, file("../x")), "archive_entry_outside"},
		"half of one":   {"/w", whole[:1200], "archive_truncated"},
		"a device":      {"/w", pack(t, &tar.Header{Typeflag: tar.TypeChar, Name: "c"}), "archive_entry_unsupported"},
		"no archive":    {"/w", []byte(strings.Repeat("x", 2000)), "invalid_archive"},
		"no path":       {"", whole, "invalid_archive_path"},
		"no whole path": {"w", whole, "invalid_archive_path"},
		"a NUL":         {"/w\x00", whole, "invalid_archive_path"},
		"a long path":   {"/" + strings.Repeat("x", maxPath), whole, "invalid_archive_path"},
	} {
		t.Run(name, func(t *testing.T) {
			err := NewPutter(run).Put(t.Context(), workload.Target{}, c.folder, c.payload)
			wantDomain(t, err, workload.InvalidArgument, c.token, "")
		})
	}
	if err := NewPutter(run).Put(t.Context(), workload.Target{}, "/w", pack(t)); err != nil {
		t.Errorf("an empty archive: %v", err)
	}
}

// TestFolder: where it cannot be made, nothing is unpacked anywhere else.
func TestFolder(t *testing.T) {
	for which, image := range images(t) {
		t.Run(which, func(t *testing.T) {
			root := openDir(t)
			if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			before := show(t, root)
			for _, dir := range []string{"file", "file/below"} {
				err := image.put(t, filepath.Join(root, dir), pack(t, file("f")))
				wantDomain(t, err, workload.FailedPrecondition, "archive_no_folder", "/file")
			}
			if os.Getuid() == 0 {
				closed := image
				closed.user = 12345
				if err := os.Chmod(root, 0o755); err != nil {
					t.Fatal(err)
				}
				wantDomain(t, closed.put(t, filepath.Join(root, "new"), pack(t, file("f"))), workload.FailedPrecondition, "archive_not_permitted", "Permission denied")
				wantDomain(t, closed.put(t, root, pack(t, file("f"))), workload.FailedPrecondition, "archive_not_permitted", "Permission denied")
			}
			if diff := cmp.Diff(before, show(t, root)); diff != "" {
				t.Errorf("it changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestNoTar(t *testing.T) {
	for name, i := range images(t) {
		if name == "busybox" {
			continue // its shell has a tar of its own
		}
		i.path = openDir(t)
		dir := openDir(t)
		wantDomain(t, i.put(t, filepath.Join(dir, "new"), pack(t, file("f"))), workload.FailedPrecondition, "archive_no_tar", "tar in the image")
		if left := show(t, dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// TestReadsAll: whatever goes wrong, the script reads what it is sent. A cluster tells
// the end of no program that leaves more of it than a pipe holds.
func TestReadsAll(t *testing.T) {
	large := &tar.Header{Typeflag: tar.TypeReg, Name: "link/large", Size: 1 << 20, Mode: 0o644}
	for which, image := range images(t) {
		root := openDir(t)
		for _, err := range []error{
			os.WriteFile(filepath.Join(root, "file"), nil, 0o600), os.MkdirAll(filepath.Join(root, "linked"), 0o755), os.Symlink("/", filepath.Join(root, "linked", "link")),
			os.MkdirAll(filepath.Join(root, "taken", "link", "large", "folder"), 0o755),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		bare := image
		bare.path = openDir(t)
		for name, c := range map[string]struct {
			in  Run
			dir string
		}{"no tar": {bare.run, "new"}, "a file": {image.run, "file"}, "a link": {image.run, "linked"}, "tar fails": {image.run, "taken"}} {
			t.Run(which+" "+name, func(t *testing.T) {
				left := int64(-1)
				run := func(ctx context.Context, target workload.Target, argv []string, stdin io.Reader) (Result, error) {
					result, err := c.in(ctx, target, argv, stdin)
					left, _ = io.Copy(io.Discard, stdin)
					return result, err
				}
				if err := NewPutter(run).Put(t.Context(), workload.Target{}, filepath.Join(root, c.dir), pack(t, large)); err == nil && (name != "no tar" || which != "busybox") { // whose shell has a tar of its own
					t.Error("it succeeds")
				}
				if left != 0 {
					t.Errorf("%d bytes were not read", left)
				}
			})
		}
	}
}

// TestRunFails: an error that says nothing of the program is never a success.
func TestRunFails(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		err   error
		kind  workload.Kind
		token string
	}{
		"no shell":             {workload.Errorf(workload.FailedPrecondition, "exec_start_failed", "no such file"), workload.FailedPrecondition, "archive_no_tar"},
		"the Pod is gone":      {workload.Errorf(workload.NotFound, "exec_start_failed", "gone"), workload.NotFound, "exec_start_failed"},
		"the connection broke": {io.ErrUnexpectedEOF, workload.Unavailable, "archive_interrupted"},
	} {
		run := func(context.Context, workload.Target, []string, io.Reader) (Result, error) { return Result{}, c.err }
		t.Run(name, func(t *testing.T) {
			wantDomain(t, NewPutter(run).Put(t.Context(), workload.Target{}, "/w", pack(t, file("f"))), c.kind, c.token, "")
		})
	}
	run := func(context.Context, workload.Target, []string, io.Reader) (Result, error) {
		return Result{}, io.ErrClosedPipe
	}
	if err := NewPutter(run).Put(ended, workload.Target{}, "/w", pack(t, file("f"))); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left: %v", err)
	}
}

// TestOutcome: the words of several tars, for what cannot be had on any machine.
func TestOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		result      Result
		kind        workload.Kind
		token, says string
	}{
		"a full disk, GNU":     {Result{Code: 2, Stderr: []byte("tar: big: Wrote only 512 of 10240 bytes\ntar: big: Cannot write: No space left on device\ntar: Exiting\n")}, workload.ResourceExhausted, "archive_no_space", "big: Cannot write: No space left on device; what was unpacked stays"},
		"a full disk, busybox": {Result{Code: 1, Stderr: []byte("tar: write error: No space left on device\n")}, workload.ResourceExhausted, "archive_no_space", "write error"},
		"no room for a folder": {Result{Code: exitNoFolder, Stderr: []byte("mkdir: can't create directory '/x': No space left on device\n")}, workload.ResourceExhausted, "archive_no_space", "/w"},
		"a quota":              {Result{Code: 2, Stderr: []byte("tar: x: Disk quota exceeded\n")}, workload.ResourceExhausted, "archive_no_space", "quota"},
		"read-only":            {Result{Code: 2, Stderr: []byte("tar: x: Cannot open: Read-only file system\n")}, workload.FailedPrecondition, "archive_read_only", "x: Cannot open"},
		"owners":               {Result{Code: 2, Stderr: []byte("tar: x: Cannot change ownership to uid 1: Operation not permitted\n")}, workload.FailedPrecondition, "archive_not_permitted", "ownership"},
		"anything else":        {Result{Code: 2, Stderr: []byte("\n\x1b[2Jtar: x: File name too long\nmore\n")}, workload.FailedPrecondition, "archive_failed", "code 2: [2Jtar: x: File name too long;"},
		"not a word":           {Result{Code: 137}, workload.FailedPrecondition, "archive_failed", "code 137;"},
		"very many words":      {Result{Code: 1, Stderr: []byte(strings.Repeat("ü", 4000))}, workload.FailedPrecondition, "archive_failed", "…"},
		"cut":                  {Result{Code: exitCut}, workload.Unavailable, "archive_interrupted", ""},
		"less than all":        {Result{Stdout: []byte("0+3 records in\n1+0 records out\n")}, workload.Unavailable, "archive_interrupted", ""},
		"a part of a record":   {Result{Stdout: []byte("0+3 records in\n2+1 records out\n")}, workload.Unavailable, "archive_interrupted", ""},
		"not counted":          {Result{}, workload.Unavailable, "archive_interrupted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := outcome(&c.result, "/w", sent{bytes: 20480, whole: true})
			wantDomain(t, err, c.kind, c.token, c.says)
			if len(err.Error()) > 600 {
				t.Errorf("it is long: %d bytes", len(err.Error()))
			}
		})
	}
	all := Result{Stdout: []byte("1+1 records in\n2+0 records out\n20480 bytes copied\n")}
	if err := outcome(&all, "/w", sent{bytes: 20480, whole: true}); err != nil {
		t.Error(err)
	}
	if err := outcome(&all, "/w", sent{bytes: 20480}); err == nil {
		t.Error("what was not read to its end is a success")
	}
}
