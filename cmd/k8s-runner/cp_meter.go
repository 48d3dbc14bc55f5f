package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// meterAfter is how long a copy runs before its progress is shown, meterEvery
	// how long one line stays.
	meterAfter = time.Second
	meterEvery = 200 * time.Millisecond
)

// meter counts bytes and shows a person how many there were.
type meter struct {
	to    io.Writer
	count int64
	// next is when the next line is due; shown is true once there was one.
	next  time.Time
	shown bool
}

func (x *copying) newMeter() *meter {
	m := &meter{to: io.Discard, next: time.Now().Add(meterAfter)}
	if !x.quiet && isTerminal(x.cmd.ErrOrStderr()) {
		m.to = x.cmd.ErrOrStderr()
	}
	return m
}

func (m *meter) Write(p []byte) (int, error) {
	m.count += int64(len(p))
	if now := time.Now(); now.After(m.next) {
		m.shown, m.next = true, now.Add(meterEvery)
		_, _ = fmt.Fprintf(m.to, "\r%.1f MiB copied", float64(m.count)/(1<<20)) // it is only for looking at
	}
	return len(p), nil
}

// end ends the line of the meter.
func (m *meter) end() {
	if m.shown {
		_, _ = fmt.Fprintf(m.to, "\r%.1f MiB copied\n", float64(m.count)/(1<<20)) // as above
	}
}

// isTerminal reports whether a person looks at out.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
