package main

import (
	"bytes"
	"testing"
	"time"
)

func TestProgressInALog(t *testing.T) {
	var b bytes.Buffer
	p := &progress{out: &b, total: 2, every: time.Hour, began: time.Now()}
	p.step("first")
	p.step("second")
	p.halt() // it failed
	p.halt()
	want := "[ 1/2] first …\n[ 1/2] first ✓ 0.0s\n[ 2/2] second …\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	if len(p.done) != 1 {
		t.Errorf("done: %v", p.done)
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		40 * time.Millisecond:   "0.0s",
		4260 * time.Millisecond: "4.3s",
		12 * time.Second:        "12s",
		200 * time.Second:       "3m20s",
		10 * time.Minute:        "10m0s",
	} {
		if got := elapsed(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
