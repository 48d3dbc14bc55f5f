package exec

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/agynio/k8s-runner/workload"
)

// caller sends one piece of input, or its end, or nothing.
type caller struct {
	workload.Session
	sends *input
}

func (c caller) Stdin(ctx context.Context) ([]byte, error) {
	if c.sends == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.sends.data, c.sends.err
}

// TestFirstInput: what comes first says whether there is any, and none of it is lost.
func TestFirstInput(t *testing.T) {
	for name, c := range map[string]struct {
		sends *input
		none  bool
	}{
		"nothing": {nil, false},
		"a line":  {&input{data: []byte("a line\n")}, false},
		"an end":  {&input{err: io.EOF}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &execution{command: &workload.Command{}, session: caller{sends: c.sends}}
				x.input = x.firstInput(t.Context())
				if got := x.process([]string{"cat"}); got.noInput != c.none {
					t.Errorf("it has none: %t", got.noInput)
				}
				if c.sends == nil || c.none {
					return
				}
				if data, err := x.nextInput(t.Context()); err != nil || !bytes.Equal(data, c.sends.data) {
					t.Errorf("it reads %d bytes, %v", len(data), err)
				}
			})
		})
	}
}
