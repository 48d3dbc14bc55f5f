package exec

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFullPieces: what has come in pieces of any size is read in order, in pieces as
// full as can be; an error comes after all that came before.
func TestFullPieces(t *testing.T) {
	broken := errors.New("broken")
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := &spdyConnection{pieces: make(chan piece, 40), free: make(chan []byte, 40)}
		var want []piece
		for range random.IntN(40) {
			from, data := channelStdout, make([]byte, 1+random.IntN(maxPiece>>random.IntN(12)))
			if random.IntN(8) == 0 {
				from = channelStderr
			}
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			s.pieces <- piece{from: from, data: data}
			if last := len(want) - 1; last >= 0 && want[last].from == from {
				want[last].data = append(want[last].data, data...)
			} else {
				want = append(want, piece{from: from, data: slices.Clone(data)})
			}
		}
		end := io.EOF
		if seed%2 == 0 {
			end = broken
			s.pieces <- piece{err: broken}
		}
		close(s.pieces)
		for _, w := range want {
			for part := range slices.Chunk(w.data, fullPiece) {
				if from, data, err := s.read(); err != nil || from != w.from || !bytes.Equal(data, part) {
					t.Fatalf("seed %d: it reads %d bytes from %d, %v; not %d from %d", seed, len(data), from, err, len(part), w.from)
				}
			}
		}
		if _, data, err := s.read(); len(data) > 0 || !errors.Is(err, end) {
			t.Errorf("seed %d: it ends with %d bytes, %v", seed, len(data), err)
		}
	}
}
