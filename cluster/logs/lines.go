package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// maxPiece is the size of the largest piece, with its time. A longer line comes
// in several.
const maxPiece = 64 << 10

var (
	// errNoTime is a line without a time: not the container wrote it, but the
	// kubelet, about a fault of its own. Its text is not repeated, because after a
	// line that has not ended it could be the container's.
	errNoTime = errors.New("the kubelet reports a fault in the middle of the log")
	// errNoFollow is the fault that it cannot follow, because the node has no
	// inotify instance left. What was written until now it has sent.
	errNoFollow = errors.New("the kubelet cannot follow the log: the node has no inotify instance left (fs.inotify.max_user_instances)")
)

// piece is a line, or a part of one that is longer than maxPiece.
type piece struct {
	// at is the time of the line.
	at   time.Time
	data []byte
	// first and last say where in its line it stands.
	first, last bool
	// cut is true if the log ends with it, and the line does not.
	cut bool
}

// lines reads a log with times from the API server.
type lines struct {
	in *bufio.Reader
	// at is the time of the line that is being read, if inside says that it has
	// begun.
	at     time.Time
	inside bool
	// rest is true as long as the rest of an older line may come.
	rest bool
}

// newLines reads in, which has the lines since some time, or not.
func newLines(in io.Reader, since bool) *lines {
	return &lines{in: bufio.NewReaderSize(in, maxPiece), rest: since}
}

// next returns the next piece, whose data is valid until the following call, and
// io.EOF at the end. What a broken connection leaves of a line is not returned.
func (l *lines) next() (piece, error) {
	data, ended, err := l.read()
	if err != nil {
		return piece{}, err
	}
	if l.rest && !ended {
		if data, ended, err = l.skipRest(data); err != nil {
			return piece{}, err
		}
	}
	l.rest = false
	p := piece{data: data, first: !l.inside, last: data[len(data)-1] == '\n', cut: ended}
	if p.first {
		at, length := timeOf(data)
		if length == 0 {
			return piece{}, fault(data)
		}
		l.at, p.data = at, data[length:]
	}
	p.at, l.inside = l.at, !p.last
	return p, nil
}

// read returns the next bytes up to the end of a line, or as many as there is
// room for, and whether the log ends there.
func (l *lines) read() (data []byte, ended bool, err error) {
	data, err = l.in.ReadSlice('\n')
	switch {
	case err == nil, errors.Is(err, bufio.ErrBufferFull):
		return data, false, nil
	case errors.Is(err, io.EOF) && len(data) > 0:
		return data, true, nil
	}
	return nil, false, err
}

// skipRest leaves out what an answer may begin with: the rest of a line that
// began, and has its time, before what was asked for.
func (l *lines) skipRest(data []byte) (line []byte, ended bool, err error) {
	if _, length := timeOf(data); length > 0 {
		return data, false, nil
	}
	for data[len(data)-1] != '\n' {
		if data, _, err = l.read(); err != nil {
			return nil, false, err
		}
	}
	return l.read()
}

// timeOf reads the time at the beginning of a line, and says how long it is with
// the space after it; 0 if there is none.
func timeOf(line []byte) (at time.Time, length int) {
	i := bytes.IndexByte(line[:min(len(line), len(time.RFC3339Nano)+1)], ' ')
	if i < 0 {
		return time.Time{}, 0
	}
	at, err := time.Parse(time.RFC3339Nano, string(line[:i]))
	if err != nil {
		return time.Time{}, 0
	}
	return at, i + 1
}

// fault is what the kubelet says of itself in a line without a time.
func fault(line []byte) error {
	if bytes.Contains(line, []byte("fsnotify watcher")) {
		return errNoFollow
	}
	return errNoTime
}
