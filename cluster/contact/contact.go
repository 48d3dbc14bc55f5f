// Package contact looks at what goes between the runner and the API server: what
// is asked and how it is answered, when each cache last heard from it, and
// whether it answers at all.
package contact

import (
	"context"
	"sync"
	"time"
)

const (
	// patience is how long the API server may be out of reach before that counts:
	// it is started anew now and then.
	patience = 15 * time.Second
	// askEvery is how often it is asked meanwhile, and askLimit bounds each time.
	askEvery = 2 * time.Second
	askLimit = 5 * time.Second
	// settling is how long an API server that answers again may refuse what it
	// allowed before: one that has just been started knows no Roles yet.
	settling = 15 * time.Second
)

// Meter counts requests.
type Meter interface {
	// Asked: there is an answer. code is that of HTTP, or error, or cancelled if the
	// caller went away.
	Asked(verb, resource, code string)
	// Took: the head of the answer came after so long.
	Took(verb string, after time.Duration)
	// Heard: a part of a list or of a watch came.
	Heard(resource string)
}

// Contact is that of one runner. Its zero value is of no use.
type Contact struct {
	meter Meter
	// failed wakes Run.
	failed chan struct{}

	mu sync.Mutex
	// since is when the API server began not to answer, or zero; reason is how.
	since  time.Time
	reason string
	// back is when it last began to answer again, or zero.
	back time.Time
}

// New returns a Contact that has heard nothing bad yet.
func New(meter Meter) *Contact {
	return &Contact{meter: meter, failed: make(chan struct{}, 1)}
}

// Lost says why the API server is out of reach, if it has been so for a while.
func (c *Contact) Lost() (reason string, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() || time.Since(c.since) < patience {
		return "", false
	}
	return "out of reach since " + c.since.UTC().Format(time.RFC3339) + ": " + c.reason, true
}

// Run asks the API server, with ask, as long as it does not answer others, until
// ctx ends: nobody else may ask it soon. It costs nothing while all is well.
func (c *Contact) Run(ctx context.Context, ask func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.failed:
		}
		for c.failing() {
			bounded, cancel := context.WithTimeout(ctx, askLimit)
			ask(bounded)
			cancel()
			select {
			case <-ctx.Done():
				return
			case <-time.After(askEvery):
			}
		}
	}
}

func (c *Contact) failing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}

// answers notes that the API server does, and reports whether it has only just
// begun to.
func (c *Contact) answers() (settles bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() {
		c.back = time.Now()
	}
	c.since, c.reason = time.Time{}, ""
	return !c.back.IsZero() && time.Since(c.back) < settling
}

// fails notes that it does not.
func (c *Contact) fails(reason string) {
	c.mu.Lock()
	if c.since.IsZero() {
		c.since = time.Now()
	}
	c.reason = reason
	c.mu.Unlock()
	select {
	case c.failed <- struct{}{}:
	default: // Run knows
	}
}
