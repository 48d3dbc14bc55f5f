package tlsfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

// TestRenewedWhileServing renews a certificate in each way that a file changes in:
// new connections have the new one, and one from before lives on.
func TestRenewedWhileServing(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, Files, certs.Pair){
		"written over": func(t *testing.T, files Files, p certs.Pair) {
			write(t, files.Cert, p.Cert)
			write(t, files.Key, p.Key)
		},
		"renamed": func(t *testing.T, files Files, p certs.Pair) {
			rename(t, files.Cert, p.Cert)
			rename(t, files.Key, p.Key)
		},
		"of the same time": func(t *testing.T, files Files, p certs.Pair) {
			for file, text := range map[File]string{files.Cert: p.Cert, files.Key: p.Key} {
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
			ours := certs.New(t)
			first, second := ours.Pair(t), ours.Pair(t)
			files := filesOf(t, first, "")
			s := serve(t, files)
			caller := client(t, filesOf(t, certs.Pair{}, ours.PEM), "")
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
	ours := certs.New(t)
	first, second := ours.Pair(t), ours.Pair(t)
	files := filesOf(t, first, ours.PEM)
	s := serve(t, files)
	caller := client(t, filesOf(t, ours.Pair(t), ours.PEM), "")
	for step, test := range []struct {
		do         func()
		want       certs.Pair
		warn, info int
	}{
		{do: func() { write(t, files.Cert, second.Cert) }, want: first, warn: 1},
		{do: func() { write(t, files.Key, second.Key[:len(second.Key)/2]) }, want: first, warn: 2},
		{do: func() { write(t, files.Key, second.Key) }, want: second, warn: 2, info: 1},
		{do: func() { remove(t, files.Key) }, want: second, warn: 3, info: 1},
		{do: func() { write(t, files.Key, second.Key) }, want: second, warn: 3, info: 2},
		{do: func() { write(t, files.CA, "") }, want: second, warn: 4, info: 2},
		{do: func() { write(t, files.CA, ours.PEM) }, want: second, warn: 4, info: 3},
		{do: func() { write(t, files.Cert, second.Cert+ours.PEM[:len(ours.PEM)/2]) }, want: second, warn: 5, info: 3},
		{do: func() { write(t, files.Cert, second.Cert+ours.PEM[:len(ours.PEM)/3]) }, want: second, warn: 6, info: 3},
		{do: func() { write(t, files.Cert, first.Cert); write(t, files.Key, first.Key) }, want: first, warn: 6, info: 4},
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
		wantNoKey(t, fmt.Sprint(line.Message, line.Data), first.Key+second.Key)
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
	ours, next := certs.New(t), certs.New(t)
	served := ours.Pair(t)
	files := filesOf(t, served, ours.PEM)
	s := serve(t, files)
	before := client(t, filesOf(t, ours.Pair(t), ours.PEM), "")
	after := client(t, filesOf(t, next.Pair(t), ours.PEM), "")
	old := s.dial(t, before)
	wantSerial(t, old, served)
	if _, err := ask(t, s.dial(t, after)); err == nil {
		t.Error("another authority's caller is served")
	}
	write(t, files.CA, next.PEM)
	wantSerial(t, s.dial(t, after), served)
	if _, err := ask(t, s.dial(t, before)); err == nil {
		t.Error("the old authority's caller is served")
	}
	wantSerial(t, old, served)
}

// TestClientFollowsItsFiles: one that dials again later needs no new start.
func TestClientFollowsItsFiles(t *testing.T) {
	ours, next := certs.New(t), certs.New(t)
	files := filesOf(t, ours.Pair(t), ours.PEM)
	secured := client(t, files, "")
	served := ours.Pair(t)
	wantSerial(t, serve(t, filesOf(t, served, ours.PEM)).dial(t, secured), served)
	served = next.Pair(t)
	s := serve(t, filesOf(t, served, next.PEM))
	if _, err := ask(t, s.dial(t, secured)); err == nil {
		t.Error("a server of another authority is trusted")
	}
	renewed := next.Pair(t)
	write(t, files.CA, next.PEM)
	write(t, files.Cert, renewed.Cert)
	write(t, files.Key, renewed.Key)
	wantSerial(t, s.dial(t, secured), served)
}

// volume is a folder as the kubelet makes one of a Secret: each file is a link
// through the link ..data, which is replaced for all at once.
type volume struct {
	dir   string
	count int
}

func (v *volume) put(t *testing.T, p certs.Pair) Files {
	t.Helper()
	v.count++
	next := filepath.Join(v.dir, fmt.Sprintf("..%d", v.count))
	if err := os.Mkdir(next, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, File{Path: filepath.Join(next, "tls.crt")}, p.Cert)
	write(t, File{Path: filepath.Join(next, "tls.key")}, p.Key)
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
	ours := certs.New(t)
	v := &volume{dir: t.TempDir()}
	s := serve(t, v.put(t, ours.Pair(t)))
	caller := client(t, filesOf(t, certs.Pair{}, ours.PEM), "")
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
	var last certs.Pair
	for range 50 {
		last = ours.Pair(t)
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
