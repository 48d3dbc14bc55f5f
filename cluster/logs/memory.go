package logs

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

const (
	// remembered is how many of the last lines are known again. They have to span
	// the disorder of the times of stdout and stderr, which two writers note.
	remembered = 1024
	// slack is how far back a new request begins before the last line.
	slack = time.Second
)

// entry stands for a line: by its time and a hash of the bytes of its first piece.
type entry struct {
	at  int64
	sum uint64
}

// verdict says whether a line was sent already.
type verdict int

const (
	isNew verdict = iota
	isKnown
	// isLast is the last line that was sent. What follows it is new.
	isLast
	// isBeyond is a new line of a file that the last line is not in.
	isBeyond
)

// memory knows the lines that were sent when a log is read again. A log is a file,
// of which a request brings all lines from some time on, in their order, and what
// was sent is the beginning of that. So everything is known up to the last line
// that was sent, and new after it. If the file was rotated meanwhile, the last line
// is not in the new one. Then what is later than it, and not among the lines that
// are remembered, is new, and there may have been lines before that nobody has.
type memory struct {
	mu   sync.Mutex
	seed maphash.Seed
	// ring holds the last lines; next is where the next one goes once it is full.
	ring []entry
	next int
	last entry
	// run is how many lines in a row had the time of the last one; some container
	// runtimes give one to all that they read at once.
	run int
	// again is how many lines with that time a new request is still to bring.
	again int
}

func newMemory() *memory { return &memory{seed: maphash.MakeSeed()} }

func (m *memory) entry(p piece) entry {
	return entry{at: p.at.UnixNano(), sum: maphash.Bytes(m.seed, p.data)}
}

// sent notes a line that was sent.
func (m *memory) sent(e entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.at != m.last.at {
		m.run = 0
	}
	m.last = e
	m.run++
	if len(m.ring) < remembered {
		m.ring = append(m.ring, e)
		return
	}
	m.ring[m.next] = e
	m.next = (m.next + 1) % remembered
}

// reread expects a new request to bring again what was sent.
func (m *memory) reread() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again = 0
	for _, e := range m.ring {
		if e.at == m.last.at {
			m.again++ // also before others, if the times are in disorder
		}
	}
	m.again = max(m.again, m.run)
}

// judge says of the next line of a request whether it was sent before.
func (m *memory) judge(e entry) verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.again == 0 {
		return isNew
	}
	switch held := m.holds(e); {
	case e.at > m.last.at && !held:
		m.again = 0
		return isBeyond
	case e.at != m.last.at, !held && m.run <= remembered: // older, or not asked for at first
		return isKnown
	}
	if m.again--; m.again > 0 {
		return isKnown
	}
	return isLast
}

// has reports whether a line was sent, or a later one.
func (m *memory) has(e entry) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.ring) > 0 && (e.at <= m.last.at || m.holds(e))
}

// holds reports whether a line is remembered. The caller holds m.mu.
func (m *memory) holds(e entry) bool { return slices.Contains(m.ring, e) }

// empty reports whether nothing was sent.
func (m *memory) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.ring) == 0
}

// lastAt is the time of the last line that was sent.
func (m *memory) lastAt() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last.at
}
