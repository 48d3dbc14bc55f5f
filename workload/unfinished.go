package workload

import "time"

// Gate is the scheduling gate of a Pod until everything that goes with it is
// there. A Pod that carries it is of an unfinished start: the same request
// completes it, and no process of it has run.
const Gate = "agyn.io/dependents"

// Unfinished is a Pod with the gate, as it was read.
type Unfinished struct {
	// Pod is its name.
	Pod string
	UID string
	// Version is its resource version.
	Version string
	Created time.Time
}
