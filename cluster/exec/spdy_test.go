package exec

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// server is the other side of a connection: it sends what is given, and keeps what it
// gets.
type server struct {
	io.Reader
	got chan []byte
}

func (s server) Write(data []byte) (int, error) {
	s.got <- bytes.Clone(data)
	return len(data), nil
}

func (server) Close() error { return nil }

// reading is a connection with open streams, over which frames come.
func reading(frames io.Reader) (*spdyConnection, server) {
	peer := server{frames, make(chan []byte, 100)}
	s := newSPDY(peer)
	s.open = map[channel]bool{channelStdout: true, channelStderr: true, channelStatus: true}
	return s, peer
}

func appendData(to []byte, from channel, flags byte, data []byte) []byte {
	return append(appendDataHeader(to, streamOf(from), flags, len(data)), data...)
}

type piece struct {
	from channel
	data []byte
}

// TestFullPieces: what comes in frames of any size is read in order, in pieces as full
// as can be, and the end after all of it.
func TestFullPieces(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var frames []byte
		var want []piece
		for range random.IntN(40) {
			from, data := channelStdout, make([]byte, random.IntN(2*maxPiece>>random.IntN(14)))
			if random.IntN(8) == 0 {
				from = channelStderr
			}
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			frames = appendData(frames, from, 0, data)
			if random.IntN(8) == 0 {
				frames = appendPing(frames, 2)
			}
			if last := len(want) - 1; last >= 0 && want[last].from == from {
				want[last].data = append(want[last].data, data...)
			} else if len(data) > 0 {
				want = append(want, piece{from, slices.Clone(data)})
			}
		}
		end := io.ErrUnexpectedEOF
		if seed%2 == 0 {
			end = io.EOF
			for _, c := range []channel{channelStderr, channelStatus, channelStdout} {
				frames = appendData(frames, c, flagFin, nil)
			}
		}
		var in io.Reader = bytes.NewReader(frames)
		if seed%3 == 0 {
			in = iotest.HalfReader(in)
		}
		s, _ := reading(in)
		var got []piece
		for {
			from, data, err := s.read()
			if err != nil {
				if _, _, again := s.read(); !errors.Is(err, end) || !errors.Is(again, end) || len(data) > 0 {
					t.Errorf("seed %d: it ends with %d bytes, %v, and then %v", seed, len(data), err, again)
				}
				break
			}
			if len(data) == 0 || len(data) > fullPiece {
				t.Fatalf("seed %d: a piece of %d bytes", seed, len(data))
			}
			if last := len(got) - 1; last >= 0 && got[last].from == from {
				got[last].data = append(got[last].data, data...)
			} else {
				got = append(got, piece{from, bytes.Clone(data)})
			}
		}
		if !slices.EqualFunc(got, want, func(a, b piece) bool { return a.from == b.from && bytes.Equal(a.data, b.data) }) {
			t.Errorf("seed %d: it reads another output", seed)
		}
	}
}

// TestMergedPieces: small frames that are here at once become one piece, also what a
// large one leaves.
func TestMergedPieces(t *testing.T) {
	var frames []byte
	for range 100 {
		frames = appendData(frames, channelStdout, 0, []byte("ten bytes\n"))
	}
	frames = appendData(frames, channelStdout, 0, make([]byte, fullPiece))
	frames = appendData(frames, channelStderr, 0, []byte("an error"))
	s, _ := reading(bytes.NewReader(frames))
	for _, want := range []int{fullPiece, 1000, len("an error")} {
		if _, data, err := s.read(); err != nil || len(data) != want {
			t.Errorf("it reads %d bytes instead of %d, %v", len(data), want, err)
		}
	}
}

// TestSPDYControl: pings are answered, a stream that is reset is at its end, what is
// not known is left out.
func TestSPDYControl(t *testing.T) {
	frames := appendPing(nil, 42)
	frames = append(appendControlHeader(frames, 4, 100), make([]byte, 100)...) // settings
	frames = appendData(frames, channelResize, 0, []byte("of nobody"))
	frames = appendDataHeader(frames, 2, flagFin, 0)
	for _, c := range []channel{channelStdout, channelStderr} {
		frames = appendControlHeader(frames, rstStream, 2*wordSize)
		frames = binary.BigEndian.AppendUint64(frames, uint64(streamOf(c))<<32|5)
	}
	frames = appendData(frames, channelStatus, flagFin, []byte("status"))
	s, peer := reading(bytes.NewReader(frames))
	if from, data, err := s.read(); from != channelStatus || string(data) != "status" || err != nil {
		t.Errorf("it reads %q from %d, %v", data, from, err)
	}
	if _, _, err := s.read(); !errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v", err)
	}
	select {
	case got := <-peer.got:
		if !bytes.Equal(got, appendPing(nil, 42)) {
			t.Errorf("the ping is answered with %x", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the ping is not answered")
	}
}

// TestBrokenFrame: what came before a connection broke is read, and then why it ended.
func TestBrokenFrame(t *testing.T) {
	whole := appendData(nil, channelStdout, flagFin, []byte("output"))
	for n := range len(whole) {
		s, _ := reading(bytes.NewReader(whole[:n]))
		var got []byte
		var err error
		for err == nil {
			var data []byte
			_, data, err = s.read()
			got = append(got, data...)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != max(0, n-frameHeader) {
			t.Errorf("after %d bytes it reads %d and %v", n, len(got), err)
		}
	}
}

// TestBegin: the streams are opened in the order of their numbers, with headers that
// zlib can read, and begin waits for an answer to each.
func TestBegin(t *testing.T) {
	reply := func(to []byte, kind uint16, c channel) []byte {
		to = binary.BigEndian.AppendUint32(appendControlHeader(to, kind, 2*wordSize), streamOf(c))
		return append(to, 0, 0, 0, 0)
	}
	for name, c := range map[string]struct {
		process process
		streams []channel
		kinds   string
	}{
		"a command":  {process{}, []channel{channelStdin, channelStdout, channelStderr, channelStatus}, "stdin stdout stderr error"},
		"no input":   {process{noInput: true}, []channel{channelStdout, channelStderr, channelStatus}, "stdout stderr error"},
		"a terminal": {process{tty: true}, []channel{channelStdin, channelStdout, channelStatus, channelResize}, "stdin stdout error resize"},
	} {
		t.Run(name, func(t *testing.T) {
			var replies []byte
			for _, stream := range slices.Backward(c.streams) {
				replies = reply(replies, synReply, stream)
			}
			peer := server{bytes.NewReader(replies), make(chan []byte, 10)}
			s := newSPDY(peer)
			if err := s.begin(t.Context(), c.process); err != nil {
				t.Fatal(err)
			}
			if kinds := opened(t, <-peer.got, c.streams); kinds != c.kinds {
				t.Errorf("it opens %s", kinds)
			}
			if end := <-peer.got; !bytes.Equal(end, appendData(nil, channelStatus, flagFin, nil)) {
				t.Errorf("then it sends %x", end)
			}
			peer.Reader = bytes.NewReader(append(replies[2*wordSize+frameHeader:], reply(nil, rstStream, channelStdout)...))
			refused := newSPDY(peer)
			if err := refused.begin(t.Context(), c.process); err == nil || !strings.Contains(err.Error(), "does not take all") {
				t.Errorf("a stream that is refused: %v", err)
			}
		})
	}
}

// opened reads frames that open streams, and returns their kinds.
func opened(t *testing.T, frames []byte, streams []channel) string {
	t.Helper()
	var headers bytes.Buffer
	var kinds []string
	for _, stream := range streams {
		h := parseHeader(frames)
		body := frames[frameHeader : frameHeader+h.length]
		frames = frames[frameHeader+h.length:]
		if !h.control || h.kind != synStream || binary.BigEndian.Uint32(body) != streamOf(stream) {
			t.Fatalf("it sends %+v, %x", h, body)
		}
		headers.Write(body[10:])
		kinds = append(kinds, "")
	}
	if len(frames) > 0 {
		t.Errorf("it sends %x as well", frames)
	}
	plain, err := zlib.NewReader(&headers)
	if err != nil {
		t.Fatal(err)
	}
	text := func() string {
		var n uint32
		if err := binary.Read(plain, binary.BigEndian, &n); err != nil {
			t.Fatal(err)
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(plain, data); err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for i := range kinds {
		var pairs uint32
		if err := binary.Read(plain, binary.BigEndian, &pairs); err != nil || pairs != 1 {
			t.Fatalf("%d headers, %v", pairs, err)
		}
		if name := text(); name != "streamtype" {
			t.Errorf("a header %q", name)
		}
		kinds[i] = text()
	}
	return strings.Join(kinds, " ")
}

// FuzzSPDY: whatever comes, reading it ends, and brings no more than came.
func FuzzSPDY(f *testing.F) {
	f.Add(appendData(appendPing(nil, 1), channelStdout, flagFin, []byte("output")))
	f.Add(appendControlHeader(nil, rstStream, 1<<24-1))
	f.Add(appendDataHeader(nil, streamOf(channelStatus), 0xff, 1<<24-1))
	f.Fuzz(func(t *testing.T, frames []byte) {
		s, _ := reading(bytes.NewReader(frames))
		total := 0
		for {
			_, data, err := s.read()
			if err != nil {
				break
			}
			if len(data) == 0 || len(data) > fullPiece {
				t.Fatalf("a piece of %d bytes", len(data))
			}
			if total += len(data); total > len(frames) {
				t.Fatal("it reads more than came")
			}
		}
	})
}
