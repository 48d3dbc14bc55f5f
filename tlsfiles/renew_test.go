package tlsfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
)

// TestRenewedWhileServing renews a certificate in each way that a file changes in:
// new connections have the new one, and one from before lives on.
func TestRenewedWhileServing(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, Files, pair){
		"written over": func(t *testing.T, files Files, p pair) {
			write(t, files.Cert, p.cert)
			write(t, files.Key, p.key)
		},
		"renamed": func(t *testing.T, files Files, p pair) {
			rename(t, files.Cert, p.cert)
			rename(t, files.Key, p.key)
		},
		"of the same time": func(t *testing.T, files Files, p pair) {
			for file, text := range map[File]string{files.Cert: p.cert, files.Key: p.key} {
				before, err := os.Stat(file.Path)
				if err != nil {
					t.Fatal(err)
				}
				write(t, file, text)
				if err := os.Chtimes(file.Path, before.ModTime(), before.ModTime()); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours := newAuthority(t)
			first, second := ours.pair(t), ours.pair(t)
			files := filesOf(t, first, "")
			s := serve(t, files)
			caller := client(t, filesOf(t, pair{}, ours.pem), "")
			old := s.dial(t, caller)
			wantSerial(t, old, first)
			replace(t, files, second)
			wantSerial(t, s.dial(t, caller), second)
			wantSerial(t, old, first)
			wantSerial(t, s.dial(t, caller), second)
			if s.lines(logrus.InfoLevel) != 1 || s.lines(logrus.WarnLevel) != 0 {
				t.Errorf("the log is %v", s.log.AllEntries())
			}
		})
	}
}

func rename(t *testing.T, f File, text string) {
	t.Helper()
	write(t, File{Path: f.Path + ".new"}, text)
	if err := os.Rename(f.Path+".new", f.Path); err != nil {
		t.Fatal(err)
	}
}

// TestBadFilesChangeNothing breaks files in each way, twice: the last good pair is
// served, the log has a line for each change, and one when all is well.
func TestBadFilesChangeNothing(t *testing.T) {
	ours := newAuthority(t)
	first, second := ours.pair(t), ours.pair(t)
	files := filesOf(t, first, ours.pem)
	s := serve(t, files)
	caller := client(t, filesOf(t, ours.pair(t), ours.pem), "")
	for step, test := range []struct {
		do         func()
		want       pair
		warn, info int
	}{
		{do: func() { write(t, files.Cert, second.cert) }, want: first, warn: 1},
		{do: func() { write(t, files.Key, second.key[:len(second.key)/2]) }, want: first, warn: 2},
		{do: func() { write(t, files.Key, second.key) }, want: second, warn: 2, info: 1},
		{do: func() { remove(t, files.Key) }, want: second, warn: 3, info: 1},
		{do: func() { write(t, files.Key, second.key) }, want: second, warn: 3, info: 2},
		{do: func() { write(t, files.CA, "") }, want: second, warn: 4, info: 2},
		{do: func() { write(t, files.CA, ours.pem) }, want: second, warn: 4, info: 3},
		{do: func() { write(t, files.Cert, second.cert+ours.pem[:len(ours.pem)/2]) }, want: second, warn: 5, info: 3},
		{do: func() { write(t, files.Cert, second.cert+ours.pem[:len(ours.pem)/3]) }, want: second, warn: 6, info: 3},
		{do: func() { write(t, files.Cert, first.cert); write(t, files.Key, first.key) }, want: first, warn: 6, info: 4},
	} {
		test.do()
		for range 3 {
			wantSerial(t, s.dial(t, caller), test.want)
		}
		if warn, info := s.lines(logrus.WarnLevel), s.lines(logrus.InfoLevel); warn != test.warn || info != test.info {
			t.Errorf("after step %d, %d lines warn and %d inform: %v", step, warn, info, s.log.AllEntries())
		}
	}
	for _, line := range s.log.AllEntries() {
		wantNoKey(t, fmt.Sprint(line.Message, line.Data), first.key+second.key)
	}
}

func remove(t *testing.T, f File) {
	t.Helper()
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
}

// TestCallersAuthorityIsRenewed: who has a certificate of the old one is refused from
// then on.
func TestCallersAuthorityIsRenewed(t *testing.T) {
	ours, next := newAuthority(t), newAuthority(t)
	served := ours.pair(t)
	files := filesOf(t, served, ours.pem)
	s := serve(t, files)
	before := client(t, filesOf(t, ours.pair(t), ours.pem), "")
	after := client(t, filesOf(t, next.pair(t), ours.pem), "")
	old := s.dial(t, before)
	wantSerial(t, old, served)
	if _, err := ask(t, s.dial(t, after)); err == nil {
		t.Error("another authority's caller is served")
	}
	write(t, files.CA, next.pem)
	wantSerial(t, s.dial(t, after), served)
	if _, err := ask(t, s.dial(t, before)); err == nil {
		t.Error("the old authority's caller is served")
	}
	wantSerial(t, old, served)
}

// TestClientFollowsItsFiles: one that dials again later needs no new start.
func TestClientFollowsItsFiles(t *testing.T) {
	ours, next := newAuthority(t), newAuthority(t)
	files := filesOf(t, ours.pair(t), ours.pem)
	secured := client(t, files, "")
	served := ours.pair(t)
	wantSerial(t, serve(t, filesOf(t, served, ours.pem)).dial(t, secured), served)
	served = next.pair(t)
	s := serve(t, filesOf(t, served, next.pem))
	if _, err := ask(t, s.dial(t, secured)); err == nil {
		t.Error("a server of another authority is trusted")
	}
	renewed := next.pair(t)
	write(t, files.CA, next.pem)
	write(t, files.Cert, renewed.cert)
	write(t, files.Key, renewed.key)
	wantSerial(t, s.dial(t, secured), served)
}

// volume is a folder as the kubelet makes one of a Secret: each file is a link
// through the link ..data, which is replaced for all at once.
type volume struct {
	dir   string
	count int
}

func (v *volume) put(t *testing.T, p pair) Files {
	t.Helper()
	v.count++
	next := filepath.Join(v.dir, fmt.Sprintf("..%d", v.count))
	if err := os.Mkdir(next, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, File{Path: filepath.Join(next, "tls.crt")}, p.cert)
	write(t, File{Path: filepath.Join(next, "tls.key")}, p.key)
	link(t, filepath.Base(next), filepath.Join(v.dir, "..data"))
	files := Files{Cert: File{Setting: "tls.cert", Path: filepath.Join(v.dir, "tls.crt")}, Key: File{Setting: "tls.key", Path: filepath.Join(v.dir, "tls.key")}}
	link(t, "..data/tls.crt", files.Cert.Path)
	link(t, "..data/tls.key", files.Key.Path)
	return files
}

// link makes name a link to target in one step.
func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+"_tmp", name); err != nil {
		t.Fatal(err)
	}
}

// TestSecretIsRenewedUnderLoad swaps a Secret's folder while callers come all the
// time: each is served, and the last swap is seen by whoever comes after it.
func TestSecretIsRenewedUnderLoad(t *testing.T) {
	ours := newAuthority(t)
	v := &volume{dir: t.TempDir()}
	s := serve(t, v.put(t, ours.pair(t)))
	caller := client(t, filesOf(t, pair{}, ours.pem), "")
	stop := make(chan struct{})
	var callers sync.WaitGroup
	served := make(chan int, 4)
	for range cap(served) {
		callers.Go(func() {
			n := 0
			for ; ; n++ {
				select {
				case <-stop:
					served <- n
					return
				default:
				}
				conn := s.dial(t, caller)
				if _, err := ask(t, conn); err != nil {
					t.Error(err)
				}
				conn.Close()
			}
		})
	}
	var last pair
	for range 50 {
		last = ours.pair(t)
		v.put(t, last)
	}
	wantSerial(t, s.dial(t, caller), last)
	close(stop)
	callers.Wait()
	for range cap(served) {
		if <-served == 0 {
			t.Error("a caller had no time to come")
		}
	}
}
