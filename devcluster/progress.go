package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// progress tells which step runs and for how long: on a terminal in one line
// that is written again and again, elsewhere in a new line now and then, so that
// whoever reads a log sees life.
type progress struct {
	out      io.Writer
	terminal bool
	every    time.Duration
	total    int // steps, as far as known
	began    time.Time
	done     []timing

	title string
	since time.Time
	stop  chan struct{} // ends the ticking of the running step
	ended chan struct{} // it has ended
}

type timing struct {
	title string
	took  time.Duration
}

func newProgress(out *os.File, total int) *progress {
	p := &progress{out: out, total: total, every: 30 * time.Second, began: time.Now()}
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" {
		p.terminal, p.every = true, time.Second
	}
	return p
}

// step ends the running step and begins the next.
func (p *progress) step(title string) {
	p.finish()
	p.title, p.since = title, time.Now()
	p.stop, p.ended = make(chan struct{}), make(chan struct{})
	p.show("…")
	go p.tick(p.stop, p.ended)
}

func (p *progress) tick(stop, ended chan struct{}) {
	defer close(ended)
	t := time.NewTicker(p.every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.show("… " + elapsed(time.Since(p.since)))
		case <-stop:
			return
		}
	}
}

// end stops the ticking. It reports whether a step was running.
func (p *progress) end() bool {
	if p.stop == nil {
		return false
	}
	close(p.stop)
	<-p.ended
	p.stop = nil
	return true
}

// halt ends the running step without calling it done.
func (p *progress) halt() {
	if p.end() && p.terminal {
		fmt.Fprintln(p.out)
	}
}

// finish ends the running step, if there is one.
func (p *progress) finish() {
	if !p.end() {
		return
	}
	took := time.Since(p.since)
	p.show("✓ " + elapsed(took))
	if p.terminal {
		fmt.Fprintln(p.out)
	}
	p.done = append(p.done, timing{p.title, took})
}

func (p *progress) show(state string) {
	line := fmt.Sprintf("[%2d/%d] %s %s", len(p.done)+1, p.total, p.title, state)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// table shows what took how long.
func (p *progress) table() {
	fmt.Fprintln(p.out)
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, t := range p.done {
		fmt.Fprintf(w, "%s\t  %s\n", elapsed(t.took), t.title)
	}
	fmt.Fprintf(w, "%s\t  in all\n", elapsed(time.Since(p.began)))
	w.Flush()
}

// elapsed is a short duration: 0.4s, 12s, 3m20s.
func elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
