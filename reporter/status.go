package reporter

import "time"

// Status is how the reports are.
type Status struct {
	// Unsent are the workloads of which the newest state was not told yet, Oldest is
	// since when the longest of them waits.
	Unsent int
	Oldest time.Time
	// Away is since when the gateway does not answer, and Why; zero if it does.
	Away time.Time
	Why  string
}

// Status returns it as of now.
func (r *Reports) Status() Status {
	var out Status
	out.Away, out.Why = r.outage.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.slots {
		if s.since.IsZero() {
			continue
		}
		out.Unsent++
		if out.Oldest.IsZero() || s.since.Before(out.Oldest) {
			out.Oldest = s.since
		}
	}
	return out
}
