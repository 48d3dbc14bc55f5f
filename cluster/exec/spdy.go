package exec

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

// spdyConnection speaks SPDY/3.1 as Kubernetes uses it: a stream for each channel, all
// opened at the beginning by this side, and no flow control but that of TCP. Where
// general libraries have a queue, goroutines and compressors for each connection, it
// has a buffer, so that there may be many, and that much output passes fast.
type spdyConnection struct {
	conn io.ReadWriteCloser
	once sync.Once

	// These are for who reads. left is what was not read yet of a frame of data, from
	// the stream at; open says which streams are not at their end, by their channels.
	in   *bufio.Reader
	at   channel
	fin  bool
	left int
	open map[channel]bool
	// piece is what is read, failed why the reading ended.
	piece  []byte
	failed error

	// writing is held by who writes, into out first.
	writing sync.Mutex
	out     []byte
	// ponging is true while a ping is answered.
	ponging atomic.Bool
}

// fullPiece is the size, in bytes, of the largest piece that is read: the runner's
// answers have room for that much. The kubelet's pieces are a little larger.
const fullPiece = 32<<10 - 64

// fullFrame is how much is written at once, in bytes: with its header it is as long as
// two records of TLS.
const fullFrame = 32<<10 - frameHeader

func newSPDY(conn io.ReadWriteCloser) *spdyConnection {
	return &spdyConnection{
		conn: conn, in: bufio.NewReaderSize(conn, maxPiece), open: map[channel]bool{},
		piece: make([]byte, 0, fullPiece), out: make([]byte, 0, frameHeader+fullFrame),
	}
}

// begin opens the streams, and waits until the server has taken all of them: it drops
// what comes before.
func (s *spdyConnection) begin(ctx context.Context, p process) error {
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	streams := []struct {
		channel channel
		kind    string
		wanted  bool
	}{
		{channelStdin, corev1.StreamTypeStdin, !p.noInput},
		{channelStdout, corev1.StreamTypeStdout, true},
		{channelStderr, corev1.StreamTypeStderr, !p.tty},
		{channelStatus, corev1.StreamTypeError, true},
		{channelResize, corev1.StreamTypeResize, p.tty},
	}
	opened := 0
	for _, stream := range streams {
		if stream.wanted {
			s.out = appendSynStream(s.out, streamOf(stream.channel), corev1.StreamType, stream.kind, opened == 0)
			opened++
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	for range opened {
		if err := s.awaitReply(); err != nil {
			return fmt.Errorf("opening the streams: %w", err)
		}
	}
	s.open[channelStdout], s.open[channelStatus] = true, true
	if !p.tty {
		s.open[channelStderr] = true
	}
	return s.send(channelStatus, flagFin, nil) // nothing goes there
}

// awaitReply reads until the server has taken one more stream.
func (s *spdyConnection) awaitReply() error {
	for {
		h, err := s.header()
		switch {
		case err != nil:
			return err
		case h.control && h.kind == synReply:
			return s.skip(h.length)
		case h.control && h.kind != rstStream:
			err = s.control(h)
		default:
			err = errors.New("the server does not take all of them")
		}
		if err != nil {
			return err
		}
	}
}

// read returns as much as is there, up to fullPiece, so that each piece is worth a
// message of its own.
func (s *spdyConnection) read() (channel, []byte, error) {
	s.piece = s.piece[:0]
	from := s.at
	for s.failed == nil && len(s.piece) < fullPiece {
		if s.left > 0 {
			from = s.at
			s.failed = s.fill()
			continue
		}
		if len(s.piece) > 0 && !s.goesOn(from) {
			break
		}
		s.failed = s.next()
	}
	if len(s.piece) > 0 {
		return from, s.piece, nil
	}
	return 0, nil, s.failed
}

// fill reads what there is room for of the frame.
func (s *spdyConnection) fill() error {
	at := len(s.piece)
	n, err := io.ReadFull(s.in, s.piece[at:min(at+s.left, fullPiece)])
	s.piece = s.piece[:at+n]
	s.left -= n
	if err != nil {
		return broken(err)
	}
	return s.ended()
}

// ended notes the end of a stream after its last frame. Its error is io.EOF once all
// are at their end.
func (s *spdyConnection) ended() error {
	if s.left > 0 || !s.fin {
		return nil
	}
	delete(s.open, s.at)
	if len(s.open) > 0 {
		return nil
	}
	return io.EOF
}

// goesOn reports whether more of a channel is here already.
func (s *spdyConnection) goesOn(from channel) bool {
	if s.in.Buffered() < frameHeader {
		return false
	}
	next, err := s.in.Peek(frameHeader)
	h := parseHeader(next)
	return err == nil && !h.control && h.stream == streamOf(from)
}

// next reads the header of a frame of data, or a whole one of another kind.
func (s *spdyConnection) next() error {
	h, err := s.header()
	if err != nil {
		return err
	}
	if h.control {
		return s.control(h)
	}
	s.at, s.left, s.fin = channelOf(h.stream), h.length, h.flags&flagFin != 0
	if !s.open[s.at] {
		s.left, s.fin = 0, false
		return s.skip(h.length)
	}
	return s.ended()
}

func (s *spdyConnection) header() (header, error) {
	data, err := s.in.Peek(frameHeader)
	if err != nil {
		return header{}, broken(err)
	}
	h := parseHeader(data)
	return h, s.skip(frameHeader)
}

func (s *spdyConnection) skip(n int) error {
	if _, err := s.in.Discard(n); err != nil {
		return broken(err)
	}
	return nil
}

// control takes a frame that is no data.
func (s *spdyConnection) control(h header) error {
	if h.kind != rstStream && h.kind != ping || h.length < wordSize {
		return s.skip(h.length)
	}
	word, err := s.in.Peek(wordSize)
	if err != nil {
		return broken(err)
	}
	id := binary.BigEndian.Uint32(word)
	if err := s.skip(h.length); err != nil {
		return err
	}
	if h.kind == ping {
		s.pong(id)
		return nil
	}
	s.at, s.left, s.fin = channelOf(id), 0, true
	return s.ended()
}

// pong answers a ping, beside the reading: a process that takes no input holds up all
// that is written.
func (s *spdyConnection) pong(id uint32) {
	if s.ponging.Swap(true) {
		return // one answer says that this side is there
	}
	go func() {
		defer s.ponging.Store(false)
		s.writing.Lock()
		defer s.writing.Unlock()
		s.out = appendPing(s.out, id)
		_ = s.flush() // if it fails the connection broke, which the reader sees
	}()
}

// broken is why there is nothing to read any more, though streams are open.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading from the container: %w", err)
}

func (s *spdyConnection) write(data []byte) error {
	for len(data) > 0 {
		n := min(len(data), fullFrame)
		if err := s.send(channelStdin, 0, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (s *spdyConnection) closeWrite() error { return s.send(channelStdin, flagFin, nil) }

func (s *spdyConnection) resize(size workload.Size) error {
	return s.send(channelResize, 0, encodeSize(size))
}

func (s *spdyConnection) send(to channel, flags byte, data []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.out = append(appendDataHeader(s.out, streamOf(to), flags, len(data)), data...)
	return s.flush()
}

// flush writes what is in out.
func (s *spdyConnection) flush() error {
	_, err := s.conn.Write(s.out)
	s.out = s.out[:0]
	if err != nil {
		return fmt.Errorf("writing to the container: %w", err)
	}
	return nil
}

func (s *spdyConnection) close() { s.once.Do(func() { _ = s.conn.Close() }) }
