package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadPlace(t *testing.T) {
	for arg, want := range map[string]place{
		"x": {"", "x"}, "-": {"", "-"}, "aa:/x": {"aa", "/x"}, "aa:": {"aa", ""}, "aa:x:y": {"aa", "x:y"}, "./aa:x": {"", "./aa:x"}, "/a:x": {"", "/a:x"},
		"a/b:x": {"", "a/b:x"}, "f.txt:x": {"", "f.txt:x"}, ":x": {"", ":x"}, "workload-aa:/x": {"workload-aa", "/x"},
	} {
		if got := readPlace(arg); got != want {
			t.Errorf("%q is %+v", arg, got)
		}
	}
}

func TestInContainer(t *testing.T) {
	for path, want := range map[string]string{
		"": "/", "/": "/", ".": "/", "/.": "/", "x": "/x", "/x/": "/x/", "x/.": "/x/.", "/x//y/../z": "/x/z", "/../x": "/x", "/x/./.": "/x/.",
	} {
		if got := (place{path: path}).inContainer(); got != want {
			t.Errorf("%q is %q", path, got)
		}
	}
}

// TestLay has docker's rules.
func TestLay(t *testing.T) {
	for name, c := range map[string]struct {
		src    kind
		inside bool
		dst    string
		is     kind
		want   layout
		fails  bool
	}{
		"a file, new":                   {aFile, false, "/d/new", nothing, layout{"/d", "new", false}, false},
		"a file, new, no folder":        {aFile, false, "/d/new/", nothing, layout{}, true},
		"a file over one":               {aFile, false, "/d/f", aFile, layout{"/d", "f", false}, false},
		"a file over one that is none":  {aFile, false, "/d/f/", aFile, layout{}, true},
		"a file into a folder":          {aFile, false, "/d/", aFolder, layout{"/d", "base", false}, false},
		"a folder, new":                 {aFolder, false, "/d/new", nothing, layout{"/d/new", ".", true}, false},
		"a folder, new with a slash":    {aFolder, false, "/d/new/", nothing, layout{"/d/new", ".", true}, false},
		"a folder over a file":          {aFolder, false, "/d/f", aFile, layout{}, true},
		"a folder into a folder":        {aFolder, false, "/d", aFolder, layout{"/d", "base", false}, false},
		"what is inside, new":           {aFolder, true, "/d/new", nothing, layout{"/d/new", ".", true}, false},
		"what is inside, into a folder": {aFolder, true, "/d/.", aFolder, layout{"/d", ".", false}, false},
		"what is inside, over a file":   {aFolder, true, "/d/f", aFile, layout{}, true},
		"here":                          {aFile, false, ".", aFolder, layout{".", "base", false}, false},
		"a name here":                   {aFile, false, "new", nothing, layout{".", "new", false}, false},
	} {
		got, err := lay(c.src, "base", c.inside, c.dst, c.is)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(layout{})); diff != "" || (err != nil) != c.fails {
			t.Errorf("%s (-want +got):\n%s%v", name, diff, err)
		}
	}
}

func TestRename(t *testing.T) {
	for _, c := range []struct{ name, base, to, want string }{
		{"d", "d", "new", "new"}, {"d/f", "d", "new", "new/f"}, {"d", "d", ".", "."}, {"d/f/g", "d", ".", "f/g"}, {"f/g", ".", ".", "f/g"}, {".", ".", ".", "."},
		{"dd", "d", "new", ""}, {"x/d", "d", "new", ""}, {".", "d", "new", ""},
	} {
		if got, err := rename(c.name, c.base, c.to); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s of %s is %q, %v", c.name, c.base, got, err)
		}
	}
}

// TestInterruptedStdin: a command that waits for standard input can be interrupted.
func TestInterruptedStdin(t *testing.T) {
	_, address, stop, err := newFakeRunner(false)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	const id = "aaaa0000-0000-4000-8000-000000000001"
	run := newRoot()
	run.SetArgs([]string{"run", "--address", address, "--id", id, "busybox"})
	run.SetOut(io.Discard)
	if err := run.Execute(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, typed := io.Pipe()
	defer in.Close() // for who still reads
	cp := newRoot()
	cp.SetArgs([]string{"cp", "--address", address, "-", id + ":" + t.TempDir()})
	cp.SetIn(in)
	ended := make(chan error, 1)
	go func() { ended <- cp.ExecuteContext(ctx) }()
	if _, err := typed.Write([]byte("x")); err != nil { // it reads
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it succeeds")
		}
	case <-time.After(30 * time.Second):
		t.Error("it goes on")
	}
}

// TestMeter shows a line to a person once a copy takes long.
func TestMeter(t *testing.T) {
	var out written
	m := &meter{to: &out, next: time.Now().Add(time.Hour)}
	if _, err := m.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	m.end()
	if len(out) > 0 {
		t.Errorf("it shows %q at once", out)
	}
	m.next = time.Time{}
	if _, err := m.Write(make([]byte, 1<<19)); err != nil {
		t.Fatal(err)
	}
	m.end()
	if diff := cmp.Diff(written{"\r1.5 MiB copied", "\r1.5 MiB copied\n"}, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type written []string

func (l *written) Write(p []byte) (int, error) {
	*l = append(*l, string(p))
	return len(p), nil
}
