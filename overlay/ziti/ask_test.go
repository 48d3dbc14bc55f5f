package ziti

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/openziti/sdk-golang/ziti"
	"github.com/openziti/sdk-golang/ziti/edge"
)

// busy is a client that answers when it may.
type busy struct {
	may      chan struct{}
	asked    atomic.Int32
	listener edge.Listener
	closed   atomic.Bool
}

func (b *busy) RefreshServices() error {
	b.asked.Add(1)
	<-b.may
	return nil
}

func (b *busy) ListenWithOptions(string, *sdk.ListenOptions) (edge.Listener, error) {
	if b.listener == nil {
		return nil, errors.New("no router")
	}
	return b.listener, nil
}

func (b *busy) Close() { b.closed.Store(true) }

// several is a listener that so many routers lead to.
type several struct {
	edge.Listener
	routers atomic.Int32
	closed  atomic.Bool
}

func (s *several) GetEstablishedCount() uint { return uint(s.routers.Load()) }
func (s *several) Addr() net.Addr            { return nil }
func (s *several) Close() error {
	s.closed.Store(true)
	return nil
}

// TestLateAnswer: what nobody waits for is cleared away, and nothing is asked beside it.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &several{}
		b := &busy{may: make(chan struct{}), listener: l}
		n := newNetwork(b, "runner-1")
		for range 3 {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if _, err := n.Listen(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("binding: %v, want %v", err, context.DeadlineExceeded)
			}
			if asked := b.asked.Load(); asked != 1 {
				t.Errorf("the SDK was asked %d times at once", asked)
			}
		}
		close(b.may)
		synctest.Wait()
		if !l.closed.Load() {
			t.Error("the late listener is open")
		}
		if err := n.Refresh(t.Context()); err != nil {
			t.Errorf("after the late answer: %v", err)
		}
		if err := n.Close(); err != nil || !b.closed.Load() {
			t.Errorf("closing: %v; the client is closed: %v", err, b.closed.Load())
		}
	})
}

func TestEstablished(t *testing.T) {
	l := &several{}
	b := &busy{may: make(chan struct{}), listener: l}
	close(b.may)
	got, err := newNetwork(b, "runner-1").Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for routers, want := range []bool{false, true, true} {
		l.routers.Store(int32(routers))
		if got.Established() != want {
			t.Errorf("with %d routers it is established: %v, want %v", routers, !want, want)
		}
	}
	if l.closed.Load() {
		t.Error("it is closed")
	}
}

// single is a listener that does not tell how many routers lead to it.
type single struct {
	edge.Listener
	closed bool
}

func (s *single) Close() error {
	s.closed = true
	return nil
}

func TestListenFails(t *testing.T) {
	l := &single{}
	for name, listener := range map[string]edge.Listener{"no router": nil, "of another kind": l} {
		b := &busy{may: make(chan struct{}), listener: listener}
		close(b.may)
		if _, err := newNetwork(b, "runner-1").Listen(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if !l.closed {
		t.Error("a listener of another kind is left open")
	}
}

// TestCloseWhileBusy: it does not wait for ever, and nothing is asked after it.
func TestCloseWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{may: make(chan struct{})}
		n := newNetwork(b, "runner-1")
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		n.Refresh(ctx) // it leaves the client busy
		began := time.Now()
		if err := n.Close(); err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("closing took %s and says %v", time.Since(began), err)
		}
		close(b.may)
	})
}
