//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

const mib = 1 << 20

// tarEntry is one of an archive; of a link data is its target.
type tarEntry struct {
	name string
	kind byte
	mode int64
	data []byte
}

func tarFile(name, data string) tarEntry { return tarEntry{name, tar.TypeReg, 0o644, []byte(data)} }

func tarOf(t *testing.T, entries ...tarEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Uid: 1234, Gid: 5678, ModTime: time.Unix(1_700_000_000, 0)}
		if e.kind == tar.TypeSymlink || e.kind == tar.TypeLink {
			h.Linkname = string(e.data)
		} else {
			h.Size = int64(len(e.data))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write(e.data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// noise is data that nothing compresses, the same each time.
func noise(size int) []byte {
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(data) // it returns no error
	return data
}

func (r *runner) put(t *testing.T, id, path string, payload []byte) error {
	t.Helper()
	_, err := r.PutArchive(t.Context(), &runnerv1.PutArchiveRequest{WorkloadId: id, Path: path, TarPayload: payload})
	return err
}

// runs starts a workload and waits until it runs.
func (r *runner) runs(t *testing.T, req *runnerv1.StartWorkloadRequest) string {
	t.Helper()
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "the workload runs", running)
	return req.GetWorkloadId()
}

// TestArchive: files arrive with their modes, owners and times, in a folder that is
// made; a user other than root owns what it unpacks.
func TestArchive(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	payload := tarOf(t, tarEntry{"d/", tar.TypeDir, 0o750, nil}, tarFile("d/a b\nc", "content"), tarEntry{"s", tar.TypeReg, 0o4755, []byte("suid")},
		tarEntry{"l", tar.TypeSymlink, 0o777, []byte("/etc/passwd")}, tarEntry{"h", tar.TypeLink, 0o644, []byte("s")}, tarFile("implied/f", ""))
	// The tar of busybox gives a link that leads out no owner, and, unless it is root,
	// no file more than the umask lets it.
	for image, want := range map[string]string{
		"busybox": "d 750 1234\ns 4755 1234 1700000000\ncontentsuid/etc/passwd\nf",
		nonRoot:   "d 750 12345\ns 755 12345 1700000000\ncontentsuid/etc/passwd\nf",
	} {
		t.Run(image, func(t *testing.T) {
			req := sleeper()
			req.Main.Image = image
			id := r.runs(t, req)
			for range 2 {
				if err := r.put(t, "workload-"+id, "/tmp/new folder/", payload); err != nil {
					t.Fatal(err)
				}
			}
			got := r.inside(t, id, `cd "/tmp/new folder" && stat -c '%n %a %u' d && stat -c '%n %a %u %Y' s && cat d/a* s && readlink l && [ s -ef h ] && ls implied`)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestArchiveEscapes: what would leave the folder is refused, and nothing changes,
// in it or anywhere else (C60).
func TestArchiveEscapes(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.runs(t, sleeper())
	r.inside(t, id, `mkdir -p /work/in/sub && ln -s /etc /work/in/there && ln -s ../.. /work/in/sub/up && mkdir /work/out && echo kept >/work/out/f`)
	// Every name, mode, owner, size and time.
	all := func() string {
		return r.inside(t, id, `find / -xdev \( -path /proc -o -path /sys -o -path /dev \) -prune -o -exec stat -c '%N %f %u %g %s %Y' {} + | sort`)
	}
	before := all()
	for name, c := range map[string]struct {
		entries []tarEntry
		code    codes.Code
		reason  string
	}{
		"up":                     {[]tarEntry{tarFile("ok", ""), tarFile("../out/f", "changed")}, codes.InvalidArgument, "ARCHIVE_ENTRY_OUTSIDE"},
		"absolute":               {[]tarEntry{tarFile("ok", ""), tarFile("/etc/x", "")}, codes.InvalidArgument, "ARCHIVE_ENTRY_OUTSIDE"},
		"through a link":         {[]tarEntry{{"link", tar.TypeSymlink, 0o777, []byte("/etc")}, tarFile("link/x", "")}, codes.InvalidArgument, "ARCHIVE_ENTRY_OUTSIDE"},
		"through a link after":   {[]tarEntry{tarFile("link/x", ""), {"link", tar.TypeSymlink, 0o777, []byte("/etc")}}, codes.InvalidArgument, "ARCHIVE_ENTRY_OUTSIDE"},
		"a hard link out":        {[]tarEntry{{"h", tar.TypeLink, 0o644, []byte("../out/f")}}, codes.InvalidArgument, "ARCHIVE_ENTRY_OUTSIDE"},
		"a hard link to nothing": {[]tarEntry{{"h", tar.TypeLink, 0o644, []byte("there/passwd")}}, codes.InvalidArgument, "INVALID_ARCHIVE_ENTRY"},
		"a device":               {[]tarEntry{{"dev", tar.TypeBlock, 0o666, nil}}, codes.InvalidArgument, "ARCHIVE_ENTRY_UNSUPPORTED"},
		"a link that is there":   {[]tarEntry{tarFile("ok", ""), tarFile("there/x", "")}, codes.FailedPrecondition, "ARCHIVE_THROUGH_LINK"},
		"one that is deep":       {[]tarEntry{tarFile("ok", ""), tarFile("sub/up/out/f", "changed")}, codes.FailedPrecondition, "ARCHIVE_THROUGH_LINK"},
		"the mode of one":        {[]tarEntry{{"there", tar.TypeDir, 0o777, nil}}, codes.FailedPrecondition, "ARCHIVE_THROUGH_LINK"},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, r.put(t, id, "/work/in", tarOf(t, c.entries...)), c.code, c.reason)
		})
	}
	if diff := cmp.Diff(before, all()); diff != "" {
		t.Errorf("something changed (-before +after):\n%s", diff)
	}
}

// TestArchiveSizes: archives of any size up to the limit arrive whole, also where one
// gRPC message was never that large (C59); one above it does not.
func TestArchiveSizes(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.runs(t, sleeper())
	for _, size := range []int{0, 3*mib + 900*1024, 4*mib + 100*1024, 30 * mib, 60 * mib} {
		data := noise(size)
		begin := time.Now()
		if err := r.put(t, id, "/tmp", tarOf(t, tarEntry{"data", tar.TypeReg, 0o600, data}, tarFile("last", fmt.Sprint(size)))); err != nil {
			t.Errorf("%d bytes: %v", size, err)
			continue
		}
		t.Logf("%d bytes took %s", size, time.Since(begin))
		want := fmt.Sprintf("%x  /tmp/data\n%d", md5.Sum(data), size)
		if got := r.inside(t, id, "md5sum /tmp/data; cat /tmp/last"); got != want {
			t.Errorf("%d bytes arrived as\n%s\nnot\n%s", size, got, want)
		}
	}
	largest := tarOf(t, tarEntry{"data", tar.TypeReg, 0o600, make([]byte, 64*mib-3*512)})
	if len(largest) != 64*mib {
		t.Fatalf("the archive has %d bytes", len(largest))
	}
	if err := r.put(t, id, "/tmp", largest); err != nil {
		t.Errorf("as large as the limit: %v", err)
	}
	err := r.put(t, id, "/tmp", append(largest, make([]byte, 512)...))
	wantError(t, err, codes.ResourceExhausted, "ARCHIVE_TOO_LARGE")
	if !strings.Contains(err.Error(), "67108864") {
		t.Errorf("the limit is not told: %v", err)
	}
}

// TestArchiveLimit is the operator's.
func TestArchiveLimit(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--archive-max-size", "10Ki")
	id := r.runs(t, sleeper())
	if err := r.put(t, id, "/tmp", tarOf(t, tarEntry{"f", tar.TypeReg, 0o600, noise(8 << 10)})); err != nil {
		t.Error(err)
	}
	wantError(t, r.put(t, id, "/tmp", tarOf(t, tarEntry{"f", tar.TypeReg, 0o600, noise(10 << 10)})), codes.ResourceExhausted, "ARCHIVE_TOO_LARGE")
}

// TestArchiveFails: whatever is not unpacked whole is an error that says why (C59).
func TestArchiveFails(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main.Cmd[2] = "head -c 60000000 /dev/zero >/dev/shm/full; echo x >/tmp/file; " + req.GetMain().GetCmd()[2]
	req.Volumes = []*runnerv1.VolumeSpec{{Name: "w", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL}}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "w", MountPath: "/ro", ReadOnly: true}}
	id := r.runs(t, req)
	small := tarOf(t, tarFile("a", "x"), tarFile("b", "y"))
	bare := sleeper()
	bare.Main = &runnerv1.ContainerSpec{Image: "devcluster.local/pause:1"} // one program, and nothing else
	bareID := r.runs(t, bare)
	over := sleeper()
	over.Main = shell("exit 0")
	r.start(t, over)
	r.await(t, over.GetWorkloadId(), "it has ended", ended)
	r.inside(t, id, "until [ -e /tmp/file ]; do sleep 0.1; done")
	for name, c := range map[string]struct {
		id, path string
		payload  []byte
		code     codes.Code
		reason   string
		says     string
	}{
		"half of it":           {id, "/tmp", small[:700], codes.InvalidArgument, "ARCHIVE_TRUNCATED", "cut off"},
		"half, between two":    {id, "/tmp", small[:1024], codes.InvalidArgument, "ARCHIVE_TRUNCATED", "cut off"},
		"no archive":           {id, "/tmp", bytes.Repeat([]byte("x"), 2000), codes.InvalidArgument, "INVALID_ARCHIVE", "no tar"},
		"no path":              {id, "", small, codes.InvalidArgument, "INVALID_ARCHIVE_PATH", "absolute"},
		"a full disk":          {id, "/dev/shm", tarOf(t, tarEntry{"big", tar.TypeReg, 0o600, noise(20 * mib)}), codes.ResourceExhausted, "ARCHIVE_NO_SPACE", "No space left on device"},
		"a read-only mount":    {id, "/ro", small, codes.FailedPrecondition, "ARCHIVE_READ_ONLY", "Read-only file system"},
		"a folder to be there": {id, "/ro/new", small, codes.FailedPrecondition, "ARCHIVE_READ_ONLY", "/ro/new"},
		"a file":               {id, "/tmp/file", small, codes.FailedPrecondition, "ARCHIVE_NO_FOLDER", "/tmp/file"},
		"no tar in the image":  {bareID, "/tmp", small, codes.FailedPrecondition, "ARCHIVE_NO_TAR", "in the image"},
		"one that has ended":   {over.GetWorkloadId(), "/tmp", small, codes.FailedPrecondition, "CONTAINER_NOT_RUNNING", "does not run"},
		"one that is not":      {newID(), "/tmp", small, codes.NotFound, "WORKLOAD_NOT_FOUND", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := r.put(t, c.id, c.path, c.payload)
			wantError(t, err, c.code, c.reason)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if got := r.inside(t, id, "ls /tmp"); got != "file" {
		t.Errorf("left behind: %s", got)
	}
	if err := r.put(t, id, "/tmp", tarOf(t)); err != nil {
		t.Errorf("an empty archive: %v", err)
	}
	if log := r.log.String(); strings.Contains(log, "tar_payload:") {
		t.Errorf("the log has an archive:\n%s", log)
	}
}

// TestArchiveGoesWithTheCaller: a deadline ends it, and tar does not wait for more.
func TestArchiveGoesWithTheCaller(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	id := r.runs(t, sleeper())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	payload := tarOf(t, tarEntry{"f", tar.TypeReg, 0o600, make([]byte, 60*mib)})
	for err := error(nil); err == nil; { // it may be quick
		_, err = r.PutArchive(ctx, &runnerv1.PutArchiveRequest{WorkloadId: id, Path: "/tmp", TarPayload: payload})
		if err != nil && !strings.Contains(err.Error(), "DeadlineExceeded") {
			t.Errorf("it ends with %v", err)
		}
	}
	eventually(t, 20*time.Second, "nothing of it runs", func() error {
		if left := r.inside(t, id, "ps | grep -E '[t]ar -x|[d]d ibs' || true"); left != "" {
			return fmt.Errorf("there is %s", left)
		}
		return nil
	})
}

// TestArchiveOfOneThatEnds: what did not arrive is no success, and nobody waits for it.
func TestArchiveOfOneThatEnds(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	payload := tarOf(t, tarEntry{"f", tar.TypeReg, 0o600, noise(60 * mib)})
	for name, end := range map[string]func(id string) error{
		"removed": func(id string) error {
			_, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true})
			return err
		},
		"ended": func(id string) error {
			r.execute(t, script(id, "kill 1")) // which may end it, too
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // it may have been quicker than its end
				err := r.putWhileItEnds(t, payload, end)
				if err == nil {
					continue
				}
				if code := status.Code(err); code != codes.Unavailable && code != codes.FailedPrecondition && code != codes.NotFound {
					t.Errorf("it ends with %v", err)
				}
				return
			}
			t.Error("it never ends in the middle")
		})
	}
}

// putWhileItEnds puts payload, which has a file f, into a workload that ends meanwhile.
func (r *runner) putWhileItEnds(t *testing.T, payload []byte, end func(id string) error) error {
	t.Helper()
	id := r.runs(t, sleeper())
	put := make(chan error, 1)
	go func() {
		_, err := r.PutArchive(t.Context(), &runnerv1.PutArchiveRequest{WorkloadId: id, Path: "/tmp/new", TarPayload: payload})
		put <- err
	}()
	r.inside(t, id, "until [ -e /tmp/new/f ]; do sleep 0.01; done") // it is in the middle
	if err := end(id); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-put:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it goes on for a minute")
		return nil
	}
}
