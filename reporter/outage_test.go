package reporter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestProbes: one at a time, ever more seldom, and no more seldom than that.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		if err := o.await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !o.begin("no", time.Second) || o.begin("no", time.Second) {
			t.Error("it does not tell what is news")
		}
		last := time.Now()
		for i, least := range []time.Duration{80, 160, 320, 640, 800, 800} {
			if err := o.await(t.Context()); err != nil {
				t.Fatal(err)
			}
			least *= time.Millisecond
			if pause := time.Since(last); pause < least || pause > 3*least/2 {
				t.Errorf("probe %d comes after %s", i, pause)
			}
			busy, cancel := context.WithTimeout(t.Context(), time.Hour)
			if err := o.await(busy); err == nil {
				t.Error("two probes at once")
			}
			cancel()
			if i == 2 {
				o.unused()
				if err := o.await(t.Context()); err != nil {
					t.Error("a probe that was given back is lost")
				}
			}
			last = time.Now()
			o.begin("still no", time.Second)
		}
		done := make(chan error, 1)
		go func() { done <- o.await(t.Context()) }()
		synctest.Wait()
		if since, why := o.now(); since.IsZero() || why != "still no" {
			t.Errorf("it is away since %s: %s", since, why)
		}
		if after, ended := o.end(); !ended || after < time.Hour {
			t.Errorf("it ends after %s", after)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, again := o.end(); again {
			t.Error("it ends twice")
		}
		o.begin("no", time.Second)
		time.Sleep(time.Second) // the probe is due, and nobody takes it
		o.begin("still no", time.Second)
		time.Sleep(time.Minute)
		if err := o.await(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.end()
		time.Sleep(time.Hour) // of the test's own time: nothing is left to come
		if len(o.probes) != 0 {
			t.Error("there is a probe without an outage")
		}
	})
}
