package exec

// tail keeps the last bytes of a stream. Its memory grows to twice the limit at
// most.
type tail struct {
	limit int
	data  []byte
}

func (t *tail) add(piece []byte) {
	if len(piece) >= t.limit {
		t.data = append(t.data[:0], piece[len(piece)-t.limit:]...)
		return
	}
	if len(t.data)+len(piece) > 2*t.limit {
		keep := t.limit - len(piece)
		t.data = append(t.data[:0], t.data[len(t.data)-keep:]...)
	}
	t.data = append(t.data, piece...)
}

func (t *tail) bytes() []byte { return t.data[max(0, len(t.data)-t.limit):] }
