// Package reporter makes the runner part of a platform, through the platform's
// gateway: it enrols the runner, and tells what it offers and how its workloads are.
//
// Observe is called with each state that the watch brings, and only notes it. Of a
// workload the newest state that was not told yet is kept, and no other; Run tells
// them, in the order in which they came, at most one of a workload at a time.
package reporter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/workload"
)

const (
	// inFlight bounds the reports that are on their way. Each waits for its answer, so
	// a gateway that takes ten seconds for one takes 25 a second.
	inFlight = 256
	// longestRefusal is the longest pause before a report is made again that was
	// refused.
	longestRefusal = 30 * time.Second
	// endRefusals is how often the end of a deleted workload may be refused, over some
	// minutes, before nobody wants to hear it.
	endRefusals = 12
	// catalogAgain is the pause before a catalog is told again that was refused.
	catalogAgain = 30 * time.Second
	// flushLook is how often it is looked whether all is told.
	flushLook = 20 * time.Millisecond
	// goneLimit bounds the deleted workloads whose end is not told yet.
	goneLimit = 10_000
)

// Meter measures reports.
type Meter interface {
	// Reported: one was told, or left out since it said nothing new or something newer
	// took its place, or has to be made again; result is one of the words below.
	Reported(result string)
	// Answers: the gateway does, or it does not.
	Answers(does bool)
}

// Results of reports, for a Meter.
const (
	Sent       = "sent"
	Suppressed = "suppressed"
	Retried    = "retried"
	Dropped    = "dropped"
)

// Reports are the states of all workloads on their way to the platform.
type Reports struct {
	gateway *Gateway
	meter   Meter
	log     *logrus.Logger
	outage  *outage
	// wake says that there is something in queue, and again that all is to be told
	// once more.
	wake, again chan struct{}

	mu    sync.Mutex
	slots map[string]*slot
	// queue holds the ids of workloads with something to tell, each once.
	queue []string
	gone  int
	// off: the platform takes no states; logged says that the log has it.
	off, logged bool
}

// slot is what is known of one workload.
type slot struct {
	uid string
	// newest is the newest report, told or not.
	newest *report
	// since is when the oldest change came that was not told yet; zero if all was.
	since time.Time
	// sending is the report that is on its way, if one is.
	sending      *report
	queued, gone bool
	refusals     int
}

// NewReports returns Reports that know of nothing yet.
func NewReports(gateway *Gateway, meter Meter, log *logrus.Logger) *Reports {
	return &Reports{
		gateway: gateway, meter: meter, log: log, outage: newOutage(),
		wake: make(chan struct{}, 1), again: make(chan struct{}, 1), slots: map[string]*slot{},
	}
}

// Observe notes the state of a Pod, or the last one if it is gone. It waits for
// nothing. States of one Pod come in their order.
func (r *Reports) Observe(state *workload.State, gone bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[state.ID]
	switch {
	case s == nil && gone:
		return
	case s == nil:
		s = &slot{uid: state.UID}
		r.slots[state.ID] = s
	case s.uid != state.UID && gone:
		return // an earlier Pod of its name
	case s.uid != state.UID:
		r.isGone(s, false)
		s.uid, s.newest = state.UID, nil
	}
	next := reportOf(state, now)
	if gone {
		next = ended(state, now)
		r.isGone(s, true)
	}
	if r.keep(s, next, now) {
		r.enqueue(next.id, s)
	}
	r.tidy(state.ID, s)
}

func (r *Reports) isGone(s *slot, gone bool) {
	if s.gone != gone {
		s.gone = gone
		if r.gone--; gone {
			r.gone += 2
		}
	}
}

// keep makes next the newest of s, and reports whether it is news. The caller holds
// r.mu.
func (r *Reports) keep(s *slot, next *report, now time.Time) bool {
	if last := s.newest; last != nil {
		if finished(last.status) || last.status == running && next.status == starting {
			next.status = last.status // it never goes back
		}
		if finished(last.status) && s.gone || next.same(last) {
			r.meter.Reported(Suppressed)
			return false
		}
		if !s.since.IsZero() && last != s.sending {
			r.meter.Reported(Suppressed) // the one before it
		}
	}
	s.newest, s.refusals = next, 0
	if s.since.IsZero() && !r.off {
		s.since = now
	}
	return true
}

// enqueue puts a workload into the queue. The caller holds r.mu.
func (r *Reports) enqueue(id string, s *slot) {
	if s.queued || s.sending != nil || s.since.IsZero() {
		return
	}
	s.queued = true
	r.queue = append(r.queue, id)
	wake(r.wake)
}

// tidy forgets a deleted workload of which all was told, and bounds the others. The
// caller holds r.mu.
func (r *Reports) tidy(id string, s *slot) {
	if s.gone && s.sending == nil && s.since.IsZero() {
		r.forget(id, s)
	}
	for i := 0; r.gone > goneLimit && i < len(r.queue); {
		if s := r.slots[r.queue[i]]; !s.gone {
			i++
			continue
		}
		r.forget(r.queue[i], r.slots[r.queue[i]])
		r.queue = slices.Delete(r.queue, i, i+1)
		r.meter.Reported(Dropped)
	}
}

func (r *Reports) forget(id string, s *slot) {
	r.isGone(s, false)
	delete(r.slots, id)
}

// Flush returns when all is told, or ctx ends. It is for the end, while Run runs.
func (r *Reports) Flush(ctx context.Context) {
	for ctx.Err() == nil && r.Status().Unsent > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(flushLook):
		}
	}
}

// Run tells the platform until ctx ends. catalog is called after an outage, to tell
// what a gateway that was started anew may not know.
func (r *Reports) Run(ctx context.Context, catalog func(context.Context) error) {
	r.meter.Answers(true)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		r.gateway.watch(ctx, func() { r.noAnswer(&failure{verdict: away, text: "the connection is lost"}) }, r.answered)
	})
	all.Go(func() { r.repeat(ctx, catalog) })
	free := make(chan struct{}, inFlight)
	for {
		id, next := r.next(ctx)
		if next == nil {
			return
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		all.Go(func() {
			err := r.gateway.reportState(ctx, next)
			<-free
			if ctx.Err() == nil {
				r.told(id, next, err)
			}
		})
	}
}

// repeat tells everything again after an outage.
func (r *Reports) repeat(ctx context.Context, catalog func(context.Context) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.again:
		}
		if err := catalog(ctx); err != nil && ctx.Err() == nil {
			r.log.WithError(err).Warn("the platform did not take the catalog again; it is told once more")
			time.AfterFunc(jittered(catalogAgain), func() { wake(r.again) })
		}
	}
}

// next waits for something to tell and for a time to tell it. It returns nil when ctx
// ends.
func (r *Reports) next(ctx context.Context) (string, *report) {
	for {
		for r.nothing() {
			select {
			case <-ctx.Done():
				return "", nil
			case <-r.wake:
			}
		}
		if err := r.outage.await(ctx); err != nil {
			return "", nil
		}
		if id, report := r.take(); report != nil {
			return id, report
		}
		r.outage.unused()
	}
}

func (r *Reports) nothing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue) == 0
}

// take takes the first of the queue, as it is now.
func (r *Reports) take() (string, *report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return "", nil
	}
	id := r.queue[0]
	r.queue = r.queue[1:]
	s := r.slots[id]
	s.queued, s.sending = false, s.newest
	return id, s.newest
}

// told notes what became of a report.
func (r *Reports) told(id string, sent *report, err error) {
	var f *failure
	if err != nil && !errors.As(err, &f) {
		f = &failure{text: err.Error()}
	}
	switch {
	case f == nil || f.verdict == refused:
		r.answered()
	case f.verdict == tooOld:
		r.answered()
		r.stop()
	default:
		r.noAnswer(f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[id]
	if s == nil {
		return
	}
	s.sending = nil
	switch {
	case f == nil:
		r.meter.Reported(Sent)
		s.since = time.Time{}
		if s.newest != sent {
			s.since = s.newest.observedAt.AsTime()
		}
		r.enqueue(id, s)
	case f.verdict == refused:
		r.refused(id, s, sent, f)
	default:
		r.meter.Reported(Retried)
		r.enqueue(id, s)
	}
	r.tidy(id, s)
}

// refused makes a report again later: the platform may not have heard yet of the
// workload that it has asked for. The caller holds r.mu.
func (r *Reports) refused(id string, s *slot, sent *report, f *failure) {
	log := r.log.WithError(f).WithFields(logrus.Fields{"workload_id": id, "status": sent.status.String()})
	if f.denied && s.gone && s.refusals >= endRefusals {
		log.Warn("the platform does not take the end of a workload; it is not told again")
		r.meter.Reported(Dropped)
		s.since = time.Time{}
		return
	}
	if s.refusals == 0 {
		log.Warn("the platform does not take a state; it is told again")
	}
	s.refusals++
	r.meter.Reported(Retried)
	if s.newest != sent {
		r.enqueue(id, s) // the next one is another question
		return
	}
	pause := min(firstPause<<min(s.refusals, 10), longestRefusal)
	time.AfterFunc(jittered(pause), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.slots[id] == s {
			r.enqueue(id, s)
		}
	})
}

// stop gives up the states: the platform is older than they are.
func (r *Reports) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off, r.queue = true, nil
	for _, s := range r.slots {
		s.queued, s.since = false, time.Time{}
	}
	if !r.logged {
		r.log.Warn("this platform takes no states of workloads; it is told none")
		r.logged = true
	}
}

// noAnswer notes that the gateway answers nobody.
func (r *Reports) noAnswer(f *failure) {
	atMost, message := probeEvery, "the platform's gateway does not answer; it is told the newest states when it does"
	if f.verdict == rejected {
		atMost, message = rejectedEvery, "the platform rejects the service token (gateway.service_token, environment SERVICE_TOKEN); "+
			"states wait until it takes it, or the runner is restarted with another"
	}
	if r.outage.begin(f.text, atMost) {
		r.meter.Answers(false)
		r.log.WithError(f).Warn(message)
	}
}

// answered notes that the gateway answers. After an outage everything is told again:
// it may have been started anew, without what it knew.
func (r *Reports) answered() {
	after, ended := r.outage.end()
	if !ended {
		return
	}
	r.meter.Answers(true)
	wake(r.again)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = false
	for id, s := range r.slots {
		if s.since.IsZero() {
			s.since = time.Now()
		}
		r.enqueue(id, s)
	}
	r.log.WithFields(logrus.Fields{"after": after.Round(time.Millisecond).String(), "states": len(r.queue)}).Info("the platform's gateway answers again")
}

// wake puts an item into a channel that holds one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
