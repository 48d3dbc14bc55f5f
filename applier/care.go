package applier

import (
	"sync/atomic"
	"time"
)

// careTime is how long starts are careful after one that failed.
const careTime = 10 * time.Minute

// care remembers whether starts have failed of late.
type care struct {
	failed atomic.Pointer[time.Time]
}

// after notes how a start went.
func (c *care) after(err error) {
	if err != nil {
		now := time.Now()
		c.failed.Store(&now)
	}
}

// wanted reports whether one failed within careTime.
func (c *care) wanted() bool {
	failed := c.failed.Load()
	return failed != nil && time.Since(*failed) < careTime
}
