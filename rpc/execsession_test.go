package rpc

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// caller is the other side of a session, which takes a message when it can.
type caller struct {
	grpc.ServerStream
	ctx      context.Context
	requests chan *runnerv1.ExecRequest
	// broken is closed if the next message cannot be read.
	broken  chan struct{}
	session *execSession
}

var errBroken = errors.New("the message is too large")

func (c *caller) Send(*runnerv1.ExecResponse) error { return nil }

func (c *caller) Recv() (*runnerv1.ExecRequest, error) {
	select {
	case request, ok := <-c.requests:
		if !ok {
			return nil, io.EOF
		}
		return request, nil
	case <-c.broken:
		return nil, errBroken
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
}

// withCaller calls test with the caller of a session. In the bubble around it
// synctest.Wait waits until nothing more can happen by itself.
func withCaller(t *testing.T, test func(t *testing.T, c *caller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(context.Background())
		c := &caller{ctx: ctx, requests: make(chan *runnerv1.ExecRequest), broken: make(chan struct{})}
		c.session = newExecSession(c)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.session.receive(ctx, end)
		}()
		test(t, c)
		end(nil)
		<-ended
	})
}

func input(data string, eof bool) *runnerv1.ExecRequest {
	return &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: &runnerv1.ExecStdin{Data: []byte(data), Eof: eof}}}
}

func resize(columns, rows uint32) *runnerv1.ExecRequest {
	return &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Resize{Resize: &runnerv1.ExecResize{Cols: columns, Rows: rows}}}
}

// TestSessionInput: input comes in order, and ends once.
func TestSessionInput(t *testing.T) {
	for name, c := range map[string]struct {
		sent   []*runnerv1.ExecRequest
		hangUp bool
		want   []string
	}{
		"nothing yet":            {nil, false, nil},
		"in order":               {[]*runnerv1.ExecRequest{input("a", false), input("b", false), input("c", false)}, false, []string{"a", "b", "c"}},
		"an end":                 {[]*runnerv1.ExecRequest{input("a", false), input("", true)}, false, []string{"a", "EOF", "EOF"}},
		"an end with input":      {[]*runnerv1.ExecRequest{input("a", true)}, false, []string{"a", "EOF", "EOF"}},
		"input after the end":    {[]*runnerv1.ExecRequest{input("a", true), input("b", false)}, false, []string{"a", "EOF", "EOF"}},
		"a second end":           {[]*runnerv1.ExecRequest{input("a", true), input("", false), input("", true)}, true, []string{"a", "EOF", "EOF"}},
		"a half-close":           {[]*runnerv1.ExecRequest{input("a", false)}, true, []string{"a", "EOF", "EOF"}},
		"only a half-close":      {nil, true, []string{"EOF", "EOF"}},
		"empty input is none":    {[]*runnerv1.ExecRequest{input("", false), input("a", false), input("", false)}, false, []string{"a"}},
		"a second start":         {[]*runnerv1.ExecRequest{{Msg: &runnerv1.ExecRequest_Start{Start: &runnerv1.ExecStartRequest{}}}, input("a", false)}, false, []string{"a"}},
		"a message of no kind":   {[]*runnerv1.ExecRequest{{}, input("a", false)}, false, []string{"a"}},
		"sizes are not for it":   {[]*runnerv1.ExecRequest{resize(1, 1), input("a", false), resize(2, 2)}, false, []string{"a"}},
		"bytes that are no text": {[]*runnerv1.ExecRequest{input("\x00\xff", false)}, false, []string{"\x00\xff"}},
	} {
		t.Run(name, func(t *testing.T) {
			withCaller(t, func(t *testing.T, caller *caller) {
				for _, request := range c.sent {
					caller.requests <- request
				}
				if c.hangUp {
					close(caller.requests)
				}
				synctest.Wait() // until all is taken
				var got []string
				for range c.want {
					data, err := caller.session.Stdin(caller.ctx)
					if errors.Is(err, io.EOF) {
						data = []byte("EOF")
					}
					got = append(got, string(data))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if last := len(got) - 1; last >= 0 && got[last] == "EOF" {
					return
				}
				if !waits(caller.readInput) {
					t.Error("there is more")
				}
			})
		})
	}
}

func (c *caller) readInput(ctx context.Context) { _, _ = c.session.Stdin(ctx) }
func (c *caller) readSize(ctx context.Context)  { _, _ = c.session.Size(ctx) }

// waits reports whether do waits until its context ends.
func waits(do func(ctx context.Context)) bool {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(ctx)
	}()
	synctest.Wait()
	select {
	case <-ended:
		end()
		return false
	default:
		end()
		<-ended
		return true
	}
}

// TestSessionSizes: the newest size wins, and there is one as long as a caller can
// send one.
func TestSessionSizes(t *testing.T) {
	size := func(columns, rows uint16) *workload.Size { return &workload.Size{Columns: columns, Rows: rows} }
	for name, c := range map[string]struct {
		sent   []*runnerv1.ExecRequest
		hangUp bool
		want   *workload.Size // nil for none
	}{
		"none":                       {nil, false, nil},
		"one":                        {[]*runnerv1.ExecRequest{resize(80, 24)}, false, size(80, 24)},
		"the newest":                 {[]*runnerv1.ExecRequest{resize(1, 2), resize(3, 4), resize(5, 6)}, false, size(5, 6)},
		"past input":                 {[]*runnerv1.ExecRequest{input("a", false), input("b", false), resize(5, 6)}, false, size(5, 6)},
		"after the end of input":     {[]*runnerv1.ExecRequest{input("", true), resize(5, 6)}, false, size(5, 6)},
		"before a half-close":        {[]*runnerv1.ExecRequest{resize(5, 6)}, true, size(5, 6)},
		"sizes that are none":        {[]*runnerv1.ExecRequest{resize(5, 6), resize(0, 24), resize(80, 0), resize(0, 0)}, false, size(5, 6)},
		"more than a terminal's":     {[]*runnerv1.ExecRequest{resize(65536, 4294967295)}, false, size(65535, 65535)},
		"as many as a terminal has":  {[]*runnerv1.ExecRequest{resize(65535, 1)}, false, size(65535, 1)},
		"input alone is no new size": {[]*runnerv1.ExecRequest{input("a", false)}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			withCaller(t, func(t *testing.T, caller *caller) {
				for _, request := range c.sent {
					caller.requests <- request
				}
				if c.hangUp {
					close(caller.requests)
				}
				synctest.Wait() // until all is taken
				if c.want != nil {
					got, err := caller.session.Size(caller.ctx)
					if err != nil || got != *c.want {
						t.Errorf("the size is %v (%v), not %v", got, err, *c.want)
					}
				}
				if c.hangUp {
					if got, err := caller.session.Size(caller.ctx); !errors.Is(err, io.EOF) {
						t.Errorf("after the last message comes %v (%v)", got, err)
					}
				} else if !waits(caller.readSize) {
					t.Error("there is a size more")
				}
			})
		})
	}
}

// TestSessionBound: input that nobody reads is bounded. Then the caller waits, and
// nobody else.
func TestSessionBound(t *testing.T) {
	withCaller(t, func(t *testing.T, c *caller) {
		piece := strings.Repeat("x", 1<<20)
		for range maxUnread>>20 + 1 { // the last is one too many, and known only when it is there
			c.requests <- input(piece, false)
		}
		more := func(ctx context.Context) {
			select {
			case c.requests <- resize(80, 24):
			case <-ctx.Done():
			}
		}
		if !waits(more) {
			t.Error("the caller does not wait")
		}
		if err := c.session.Output(workload.Stdout, []byte("x")); err != nil {
			t.Error(err)
		}
		if data, err := c.session.Stdin(c.ctx); err != nil || len(data) != len(piece) {
			t.Errorf("%d bytes of input come (%v)", len(data), err)
		}
		if waits(more) {
			t.Error("the caller still waits")
		}
		if got, err := c.session.Size(c.ctx); err != nil || got.Columns != 80 {
			t.Errorf("the size is %v (%v)", got, err)
		}
	})
}

// TestSessionBoundAtTheEnd: after the last input nothing is held back.
func TestSessionBoundAtTheEnd(t *testing.T) {
	withCaller(t, func(t *testing.T, c *caller) {
		c.requests <- input(strings.Repeat("x", maxUnread+1), true)
		c.requests <- resize(80, 24)
		if got, err := c.session.Size(c.ctx); err != nil || got.Columns != 80 {
			t.Errorf("the size is %v (%v)", got, err)
		}
	})
}

// TestSessionBreaks: a caller who is lost has not ended the input.
func TestSessionBreaks(t *testing.T) {
	withCaller(t, func(t *testing.T, c *caller) {
		c.requests <- input("half", false)
		close(c.broken)
		synctest.Wait()
		if data, err := c.session.Stdin(c.ctx); err != nil || string(data) != "half" {
			t.Errorf("the input is %q (%v)", data, err)
		}
		if data, err := c.session.Stdin(c.ctx); !errors.Is(err, errBroken) {
			t.Errorf("then comes %q (%v)", data, err)
		}
		if size, err := c.session.Size(c.ctx); !errors.Is(err, errBroken) {
			t.Errorf("the size is %v (%v)", size, err)
		}
	})
}

// TestSessionEnds: what waits for a caller ends with the command.
func TestSessionEnds(t *testing.T) {
	withCaller(t, func(t *testing.T, c *caller) {
		cause := errors.New("some cause")
		ctx, end := context.WithCancelCause(c.ctx)
		end(cause)
		if _, err := c.session.Stdin(ctx); !errors.Is(err, cause) {
			t.Errorf("input: %v", err)
		}
		if _, err := c.session.Size(ctx); !errors.Is(err, cause) {
			t.Errorf("sizes: %v", err)
		}
		// The session itself ends also if it waits for unread input.
		c.requests <- input(strings.Repeat("x", maxUnread+1), false)
	})
}
