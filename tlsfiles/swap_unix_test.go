//go:build unix

package tlsfiles

import (
	"os"
	"syscall"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

// TestSwappedBetweenTwoReads has the pair replaced after the certificate was read
// and before the Key: no line says that they do not fit, and the new pair counts. The
// key is a pipe, which is read when the test says so.
func TestSwappedBetweenTwoReads(t *testing.T) {
	ours := certs.New(t)
	first, second := ours.Pair(t), ours.Pair(t)
	files := filesOf(t, first, "")
	s := serve(t, files)
	remove(t, files.Key)
	if err := syscall.Mkfifo(files.Key.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	swapped := make(chan error, 1)
	go func() { swapped <- swap(files, second) }()
	wantSerial(t, s.dial(t, client(t, filesOf(t, certs.Pair{}, ours.PEM), "")), second)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if s.lines(logrus.WarnLevel) != 0 || s.lines(logrus.InfoLevel) != 1 {
		t.Errorf("the log is %v", s.log.AllEntries())
	}
}

// swap lets whoever reads the key through the pipe have the new one, once both files
// hold the new pair.
func swap(files Files, next certs.Pair) error {
	// Opening waits for the reader, who has read the certificate by then.
	pipe, err := os.OpenFile(files.Key.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer pipe.Close()
	if err := os.WriteFile(files.Cert.Path, []byte(next.Cert), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(files.Key.Path+".new", []byte(next.Key), 0o600); err != nil {
		return err
	}
	if err := os.Rename(files.Key.Path+".new", files.Key.Path); err != nil {
		return err
	}
	_, err = pipe.WriteString(next.Key)
	return err
}
