package exec

import (
	"encoding/binary"
	"strings"
)

// The frames of SPDY/3.1 (https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/),
// as far as commands in containers need them. Numbers are big-endian.
const (
	// frameHeader and wordSize are sizes, in bytes.
	frameHeader = 8
	wordSize    = 4

	// The kinds of frames that are no data.
	synStream = 1
	synReply  = 2
	rstStream = 3
	ping      = 6

	// flagFin says that a stream ends with the frame, in this direction.
	flagFin = 1

	control31 = 0x8003 // a frame that is no data, of version 3
)

// header is how a frame begins: data of a stream, or something of another kind.
type header struct {
	control bool
	kind    uint16
	stream  uint32
	flags   byte
	// length is that of what follows, in bytes.
	length int
}

// parseHeader reads the first frameHeader bytes of a frame.
func parseHeader(data []byte) header {
	first, second := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[wordSize:])
	h := header{control: first>>31 == 1, flags: byte(second >> 24), length: int(second & 0xffffff)}
	if h.control {
		h.kind = uint16(first) //nolint:gosec // its lower half
	} else {
		h.stream = first
	}
	return h
}

// streamOf is the number of the stream of a channel: those of clients are odd.
func streamOf(c channel) uint32 { return 2*uint32(c) + 1 }

// channelOf is the channel of a stream; of one that this side did not open it is one
// that nobody reads.
func channelOf(stream uint32) channel {
	if stream%2 == 0 || stream > streamOf(channelResize) {
		return channelClose
	}
	return channel(stream / 2) //nolint:gosec // see above
}

func appendDataHeader(to []byte, stream uint32, flags byte, length int) []byte {
	to = binary.BigEndian.AppendUint32(to, stream)
	return binary.BigEndian.AppendUint32(to, uint32(flags)<<24|uint32(length)) //nolint:gosec // of a frame
}

func appendControlHeader(to []byte, kind uint16, length int) []byte {
	return appendDataHeader(to, control31<<16|uint32(kind), 0, length)
}

func appendPing(to []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendControlHeader(to, ping, wordSize), id)
}

// appendSynStream opens a stream that has one header. The headers of all streams of a
// connection are one zlib stream (RFC 1950), of which first is the beginning. Here it
// consists of blocks that are stored (RFC 1951, 3.2.4), which needs no compressor; an
// empty one after each has the reader hand on what it has.
func appendSynStream(to []byte, stream uint32, name, value string, first bool) []byte {
	pairs := binary.BigEndian.AppendUint32(nil, 1)
	for _, text := range []string{strings.ToLower(name), value} {
		pairs = binary.BigEndian.AppendUint32(pairs, uint32(len(text))) //nolint:gosec // short
		pairs = append(pairs, text...)
	}
	var block []byte
	if first {
		block = []byte{0x78, 0x01} // deflate, with a window of 32 KiB and no dictionary
	}
	n := uint16(len(pairs)) //nolint:gosec // short
	block = append(block, 0)
	block = binary.LittleEndian.AppendUint16(block, n)
	block = binary.LittleEndian.AppendUint16(block, ^n)
	block = append(block, pairs...)
	block = append(block, 0, 0, 0, 0xff, 0xff)
	const fixed = 10 // the numbers of the stream and of the one it belongs to, its priority and slot
	to = appendControlHeader(to, synStream, fixed+len(block))
	to = binary.BigEndian.AppendUint32(to, stream)
	return append(append(to, make([]byte, fixed-wordSize)...), block...)
}
