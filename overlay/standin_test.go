package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
)

// errDropped is what Accept of a listener that dropped returns.
var errDropped = errors.New("the listener has dropped")

// standIn is an overlay in memory. Its answers are those that a real one was seen to
// give.
type standIn struct {
	mu        sync.Mutex
	answer    error // of Listen and Refresh
	silent    bool  // neither answers
	led       bool  // there is a router
	listeners []*standInListener
	binds     int
	closed    int
}

func newStandIn() *standIn { return &standIn{led: true} }

// becomes changes how the overlay is: deleted identities answer at once, an overlay
// out of reach does not.
func (n *standIn) becomes(change func(n *standIn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func (n *standIn) ask(ctx context.Context) error {
	n.mu.Lock()
	silent, answer := n.silent, n.answer
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return answer
}

func (n *standIn) Refresh(ctx context.Context) error { return n.ask(ctx) }

func (n *standIn) Listen(ctx context.Context) (Listener, error) {
	n.becomes(func(n *standIn) { n.binds++ })
	if err := n.ask(ctx); err != nil {
		return nil, err
	}
	l := &standInListener{network: n, gone: make(chan struct{})}
	n.becomes(func(n *standIn) { n.listeners = append(n.listeners, l) })
	return l, nil
}

func (n *standIn) Close() error {
	n.becomes(func(n *standIn) { n.closed++ })
	return nil
}

// open counts the listeners that were not closed.
func (n *standIn) open() (open int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.listeners {
		if !l.closed.Load() {
			open++
		}
	}
	return open
}

func (n *standIn) bound() *standInListener {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listeners[len(n.listeners)-1]
}

func (n *standIn) counted() (binds, closed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.binds, n.closed
}

// standInListener accepts nobody.
type standInListener struct {
	network *standIn
	gone    chan struct{}
	once    sync.Once
	closed  atomic.Bool
}

func (l *standInListener) Accept() (net.Conn, error) {
	<-l.gone
	return nil, errDropped
}

func (l *standInListener) drop() { l.once.Do(func() { close(l.gone) }) }

func (l *standInListener) Close() error {
	l.closed.Store(true)
	l.drop()
	return nil
}

func (l *standInListener) Addr() net.Addr { return address("runner-1") }

func (l *standInListener) Established() bool {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	return l.network.led
}

type address string

func (address) Network() string  { return "stand-in" }
func (a address) String() string { return string(a) }

// counts is a Meter.
type counts struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counts) Bound(result string)     { c.add("bind " + result) }
func (c *counts) Refreshed(result string) { c.add("refresh " + result) }

func (c *counts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[what]++
}

func (c *counts) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[what]
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// running is a Binding that runs, in the time of a synctest bubble.
type running struct {
	*Binding
	t       *testing.T
	network *standIn
	meter   *counts
	began   time.Time
	stop    context.CancelFunc
	result  chan error
}

// accept serves as a gRPC server does.
func accept(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accepting: %w", err)
		}
		conn.Close() // a stand-in has none
	}
}

func start(t *testing.T, network *standIn, change func(*Options)) *running {
	t.Helper()
	meter := &counts{by: map[string]int{}}
	o := Options{Network: network, Serve: accept, Meter: meter, Log: quiet()}
	if change != nil {
		change(&o)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{Binding: New(o), t: t, network: network, meter: meter, began: time.Now(), stop: stop, result: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.result <- r.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	synctest.Wait()
	return r
}

// after lets time pass.
func (r *running) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ends waits for the end, and returns how long it took.
func (r *running) ends(within time.Duration) (time.Duration, error) {
	r.t.Helper()
	began := time.Now()
	select {
	case err := <-r.result:
		return time.Since(began), err
	case <-time.After(within):
		r.t.Fatalf("it runs on after %s", within)
	}
	return 0, nil
}

// finish stops it, and checks what it leaves.
func (r *running) finish() {
	r.t.Helper()
	r.stop()
	if _, err := r.ends(time.Minute); err != nil {
		r.t.Errorf("Run, after its context ended: %v", err)
	}
	if _, reason := r.Ready(); reason != stopping {
		r.t.Errorf("it is not ready at its end because %q, want %q", reason, stopping)
	}
	r.left()
}

func (r *running) left() {
	r.t.Helper()
	if open := r.network.open(); open != 0 {
		r.t.Errorf("%d listeners are open", open)
	}
	if _, closed := r.network.counted(); closed != 1 {
		r.t.Errorf("the network was closed %d times, not once", closed)
	}
	if ready, reason := r.Ready(); ready || reason == "" {
		r.t.Errorf("it is ready (%v) at its end, because %q", ready, reason)
	}
}

func (r *running) wantReady(want bool) {
	r.t.Helper()
	if ready, reason := r.Ready(); ready != want {
		r.t.Fatalf("after %s: ready is %v (%q), want %v", time.Since(r.began), ready, reason, want)
	}
}

// waitFor waits until the meter has counted so many.
func (r *running) waitFor(what string, count int) {
	r.t.Helper()
	for range 60 {
		if r.meter.of(what) >= count {
			return
		}
		r.after(time.Second)
	}
	r.t.Fatalf("after a minute %q was counted %d times, want %d", what, r.meter.of(what), count)
}

func (r *running) wantBinds(want int) {
	r.t.Helper()
	if binds, _ := r.network.counted(); binds != want {
		r.t.Fatalf("after %s it has bound %d times, want %d", time.Since(r.began), binds, want)
	}
}
