package logs

import (
	"context"
	"io"
	"math"
	"sync/atomic"
	"time"
)

const (
	// quietLimit is how long a log is silent before it is looked at.
	quietLimit = time.Second
	// probeEvery is how often it is, if it stays silent, and failedEvery, if that fails.
	probeEvery, failedEvery = time.Minute, 5 * time.Second
	// rotateLimit is the least time between two rotations of a log: kubelets refuse
	// a shorter containerLogMonitorInterval.
	rotateLimit = 3 * time.Second
)

// guard watches one answer that follows, and cuts it if it stands still though its
// log goes on, or does not end though its container has. The kubelet stays with a
// file that was rotated away if that happened before it had come to the file's end
// for the first time; until it is rotated again, it sends nothing, and then what is
// in between is lost.
type guard struct {
	s   *stream
	in  *pulse
	cut context.CancelCauseFunc

	// due is when the log is looked at next.
	begun, probed, due time.Time
	// settled is true once the kubelet has come to the end of the file.
	settled bool
	// behind is how much was read when the log was found to go on, else -1.
	behind int64
}

// watch watches until ctx ends.
func (g *guard) watch(ctx context.Context) {
	g.begun, g.behind = time.Now(), -1
	tick := time.NewTicker(quietLimit)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reads, quiet := g.in.state()
		switch {
		case quiet < quietLimit:
		case reads == g.behind:
			g.s.joins.Store(g.joins())
			g.cut(errFrozen)
			return
		case g.s.watch.over.Load():
			g.cut(errMute)
			return
		case !g.s.memory.empty() && !time.Now().Before(g.due):
			g.probe(ctx, reads)
		}
	}
}

// probe looks whether the log goes on after what was read.
func (g *guard) probe(ctx context.Context, reads int64) {
	g.probed = time.Now()
	g.due = g.probed.Add(probeEvery)
	last, err := g.s.probe(ctx, false)
	switch {
	case err != nil:
		g.due = g.probed.Add(failedEvery)
	case last == endKnown:
		g.settled = true
	case last == endEmpty && (g.settled || reads == 0):
		// It has been rotated, and the answer goes over to the new file by itself.
		g.settled = true
		g.s.joins.Store(math.MaxInt64)
	default:
		g.behind = reads
	}
}

// joins is up to which time a line of the newest file joins the last one that was
// sent, the end of a file before. If it is the next file, every line does; if it
// could be a later one, those which are too early for that.
func (g *guard) joins() int64 {
	if !g.settled && g.probed.Sub(g.begun) < rotateLimit {
		return math.MaxInt64
	}
	return g.s.memory.lastAt() + int64(rotateLimit)
}

// pulse is a reader that tells how long somebody has been waiting for it.
type pulse struct {
	in io.Reader
	// since is when the read that is waiting began, 0 if none is.
	since atomic.Int64
	reads atomic.Int64
}

// Read reads.
func (p *pulse) Read(data []byte) (int, error) {
	p.since.Store(time.Now().UnixNano())
	n, err := p.in.Read(data)
	p.since.Store(0)
	p.reads.Add(1)
	return n, err
}

// state returns how often something was read, and for how long nothing has come.
// A caller that does not read is no silence.
func (p *pulse) state() (reads int64, quiet time.Duration) {
	reads = p.reads.Load()
	if since := p.since.Load(); since != 0 {
		quiet = time.Since(time.Unix(0, since))
	}
	return reads, quiet
}
