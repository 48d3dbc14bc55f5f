package reporter

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/e2e/gateway"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
	"github.com/agynio/k8s-runner/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "t0ken-of-the-service"

// counts is a Meter.
type counts struct {
	mu   sync.Mutex
	of   map[string]int
	does []bool
}

func (c *counts) Reported(result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[result]++
}

func (c *counts) Answers(does bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.does = append(c.does, does)
}

func (c *counts) get(result string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[result]
}

// syncBuffer is a log.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// platform is a gateway with what reports to it.
type platform struct {
	*gateway.Gateway
	address string
	reports *Reports
	client  *Gateway
	meter   *counts
	log     *syncBuffer
}

// newPlatform starts a gateway and reports that run until the test ends.
func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{Gateway: gateway.New(token), meter: &counts{of: map[string]int{}}, log: &syncBuffer{}}
	p.address = "127.0.0.1:0"
	p.start(t)
	log := logrus.New()
	log.SetOutput(p.log)
	var err error
	if p.client, err = Dial(p.address, token, insecure.NewCredentials()); err != nil {
		t.Fatal(err)
	}
	p.client.Identify("one")
	p.reports = NewReports(p.client, p.meter, log)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.reports.Run(ctx, func(ctx context.Context) error {
			return p.client.ReportCatalog(ctx, &catalog.Catalog{}, nil, time.Minute, log)
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		p.client.Close()
		p.Stop()
		if strings.Contains(p.log.String(), token) {
			t.Errorf("the log holds the token:\n%s", p.log)
		}
	})
	return p
}

func (p *platform) start(t *testing.T) {
	t.Helper()
	var err error
	if p.address, err = p.Start(t.Context(), p.address); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check returns "".
func eventually(t *testing.T, within time.Duration, check func() string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		wrong := check()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", within, wrong)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// aState is a workload whose main container is as said.
func aState(id string, c workload.ContainerState) *workload.State {
	c.Name, c.Role = "main", workload.RoleMain
	if c.Status == 0 {
		c.Status = workload.Waiting
	}
	return &workload.State{ID: id, UID: "uid-" + id, Phase: "Pending", Containers: []workload.ContainerState{c}}
}

func ready(id string) *workload.State {
	s := aState(id, workload.ContainerState{Status: workload.Running})
	s.Phase, s.Ready = workload.PhaseRunning, true
	return s
}

// states lists what the platform was told of id, in short.
func (p *platform) states(id string) (out []string) {
	for _, told := range p.States(id) {
		line := strings.TrimPrefix(told.GetStatus().String(), "WORKLOAD_STATUS_")
		if reason := told.GetContainers()[0].GetReason(); reason != "" {
			line += " " + reason
		}
		out = append(out, line)
	}
	return out
}

func (p *platform) wantStates(t *testing.T, id string, want ...string) {
	t.Helper()
	eventually(t, 10*time.Second, func() string { return cmp.Diff(want, p.states(id)) })
}

func TestReportsComeInOrder(t *testing.T) {
	p := newPlatform(t)
	tell := func(s *workload.State, gone bool, want ...string) {
		t.Helper()
		p.reports.Observe(s, gone)
		p.wantStates(t, "a", want...)
	}
	tell(aState("a", workload.ContainerState{Reason: "ContainerCreating"}), false, "STARTING ContainerCreating")
	tell(ready("a"), false, "STARTING ContainerCreating", "RUNNING")
	p.reports.Observe(ready("a"), false) // nothing new
	tell(ready("a"), true, "STARTING ContainerCreating", "RUNNING", "STOPPED PodDeleted")
	eventually(t, 10*time.Second, func() string {
		if sent, suppressed := p.meter.get(Sent), p.meter.get(Suppressed); sent != 3 || suppressed != 1 {
			return fmt.Sprintf("%d are sent, %d suppressed", sent, suppressed)
		}
		return ""
	})
	told := p.Newest("a")
	if told.GetRunnerId() != "one" || told.GetServiceToken() != token || told.GetObservedAt() == nil {
		t.Errorf("it is told %v", told)
	}
	eventually(t, 10*time.Second, func() string {
		p.reports.mu.Lock()
		defer p.reports.mu.Unlock()
		if n := len(p.reports.slots) + len(p.reports.queue) + p.reports.gone; n > 0 {
			return fmt.Sprintf("%d things are kept of what is gone", n)
		}
		return ""
	})
	again := ready("a")
	again.UID = "another"
	tell(again, false, "STARTING ContainerCreating", "RUNNING", "STOPPED PodDeleted", "RUNNING")
}

// TestReportsNeverGoBack: whatever becomes of a container, a workload that ran does
// not start again, and one that ended has.
func TestReportsNeverGoBack(t *testing.T) {
	p := newPlatform(t)
	p.reports.Observe(ready("a"), false)
	p.wantStates(t, "a", "RUNNING")
	p.reports.Observe(aState("a", workload.ContainerState{Reason: "Unready"}), false)
	p.wantStates(t, "a", "RUNNING", "RUNNING Unready")
	killed := aState("a", workload.ContainerState{Status: workload.Terminated, Reason: "Error"})
	killed.Phase = workload.PhaseFailed
	p.reports.Observe(killed, false)
	p.wantStates(t, "a", "RUNNING", "RUNNING Unready", "FAILED Error")
	late := aState("a", workload.ContainerState{Status: workload.Running, Reason: "Late"})
	p.reports.Observe(late, false)
	p.wantStates(t, "a", "RUNNING", "RUNNING Unready", "FAILED Error", "FAILED Late")
	p.reports.Observe(late, true)
	p.reports.Observe(ready("b"), false)
	p.wantStates(t, "b", "RUNNING")
	p.wantStates(t, "a", "RUNNING", "RUNNING Unready", "FAILED Error", "FAILED Late")
}

// TestAnotherPod of the name begins anew, also while the end of the one before waits.
func TestAnotherPod(t *testing.T) {
	r := NewReports(nil, &counts{of: map[string]int{}}, logrus.New())
	r.Observe(ready("a"), false)
	r.Observe(ready("a"), true)
	again := aState("a", workload.ContainerState{})
	again.UID = "another"
	r.Observe(again, false)
	r.Observe(ready("a"), true) // of the one before, once more
	if s := r.slots["a"]; r.gone != 0 || s.gone || s.newest.status != starting || len(r.queue) != 1 {
		t.Errorf("it is %+v, %+v; %d are gone, %d queued", s, s.newest, r.gone, len(r.queue))
	}
}

// TestGatewayAway: what changes while the gateway is away is told when it is back,
// the newest alone, and all that it may have forgotten.
func TestGatewayAway(t *testing.T) {
	p := newPlatform(t)
	p.reports.Observe(ready("quiet"), false)
	p.wantStates(t, "quiet", "RUNNING")
	p.Stop()
	const workloads = 300
	for n := range 50 {
		for i := range workloads {
			p.reports.Observe(aState(fmt.Sprint(i), workload.ContainerState{Reason: fmt.Sprint("Step", n)}), false)
		}
	}
	eventually(t, 5*time.Second, func() string {
		if s := p.reports.Status(); s.Away.IsZero() || s.Why == "" || s.Unsent < workloads || s.Oldest.IsZero() {
			return fmt.Sprintf("it is %+v", s)
		}
		return ""
	})
	p.Forget()
	p.start(t)
	back := time.Now()
	eventually(t, 20*time.Second, func() string {
		for i := range workloads {
			if newest := p.Newest(fmt.Sprint(i)); newest == nil || newest.GetContainers()[0].GetReason() != "Step49" {
				return fmt.Sprintf("of %d it knows %v", i, newest)
			}
		}
		return cmp.Diff([]string{"RUNNING"}, p.states("quiet"))
	})
	t.Logf("all were told %s after the gateway was back", time.Since(back).Round(time.Millisecond))
	eventually(t, 20*time.Second, func() string {
		if s := p.reports.Status(); s.Unsent != 0 || !s.Away.IsZero() || len(p.Catalogs()) == 0 {
			return fmt.Sprintf("it is %+v, with %d catalogs", s, len(p.Catalogs()))
		}
		return ""
	})
	for i := range workloads {
		if n := len(p.States(fmt.Sprint(i))); n > 3 {
			t.Errorf("%d states of one were told", n)
		}
	}
}

// TestSlowGateway: while a state is on its way, newer ones take each other's place.
func TestSlowGateway(t *testing.T) {
	p := newPlatform(t)
	p.Behave(gateway.Conduct{Delay: time.Hour})
	for n := range 100 {
		p.reports.Observe(aState("a", workload.ContainerState{Reason: fmt.Sprint("Step", n)}), false)
		if n == 0 {
			eventually(t, 10*time.Second, func() string {
				p.reports.mu.Lock()
				defer p.reports.mu.Unlock()
				if p.reports.slots["a"].sending == nil {
					return "the first is not on its way"
				}
				return ""
			})
		}
	}
	p.Behave(gateway.Conduct{})
	p.wantStates(t, "a", "STARTING Step0", "STARTING Step99")
}

// TestRefusedState: it is told again until the platform takes it, and holds nothing
// else up; the end of a workload that the platform does not know is not told for ever.
func TestRefusedState(t *testing.T) {
	p := newPlatform(t)
	var mu sync.Mutex
	refusals := 0
	p.Behave(gateway.Conduct{Refuse: func(r *runnersv1.ReportWorkloadStateRequest) error {
		mu.Lock()
		defer mu.Unlock()
		if r.GetWorkloadId() == "unknown" || r.GetWorkloadId() == "late" && refusals < 3 {
			refusals++
			return status.Errorf(codes.NotFound, "there is no workload with the token %s", token)
		}
		return nil
	}})
	p.reports.Observe(ready("late"), false)
	p.reports.Observe(ready("b"), false)
	p.wantStates(t, "b", "RUNNING")
	p.wantStates(t, "late", "RUNNING")
	p.reports.Observe(ready("unknown"), false)
	p.reports.Observe(ready("unknown"), true)
	eventually(t, 5*time.Second, func() string {
		p.reports.mu.Lock()
		defer p.reports.mu.Unlock()
		s := p.reports.slots["unknown"]
		if s.refusals < 2 || p.meter.get(Dropped) > 0 {
			return fmt.Sprintf("it is refused %d times", s.refusals)
		}
		s.refusals = endRefusals // some minutes later
		return ""
	})
	eventually(t, 5*time.Second, func() string {
		if n := p.meter.get(Dropped); n != 1 {
			return fmt.Sprintf("%d are dropped", n)
		}
		return ""
	})
	if n := strings.Count(p.log.String(), "does not take a state"); n < 1 || n > 3 {
		t.Errorf("it says %d times that a state is not taken:\n%s", n, p.log)
	}
}

// TestFlush waits until all is told, and not for ever.
func TestFlush(t *testing.T) {
	p := newPlatform(t)
	p.Behave(gateway.Conduct{Delay: 200 * time.Millisecond})
	p.reports.Observe(ready("a"), false)
	p.reports.Flush(t.Context())
	p.wantStates(t, "a", "RUNNING")
	p.Behave(gateway.Conduct{Delay: time.Hour})
	p.reports.Observe(ready("a"), true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	p.reports.Flush(ctx)
	if n := p.reports.Status().Unsent; n != 1 {
		t.Errorf("%d are to be told", n)
	}
}

// TestRejectedToken: nothing is lost while the platform does not take the token.
func TestRejectedToken(t *testing.T) {
	p := newPlatform(t)
	p.Take("another")
	p.reports.Observe(ready("a"), false)
	eventually(t, 5*time.Second, func() string {
		if s := p.reports.Status(); s.Away.IsZero() || !strings.Contains(p.log.String(), "SERVICE_TOKEN") {
			return fmt.Sprintf("it is %+v:\n%s", s, p.log)
		}
		return ""
	})
	p.Take(token)
	p.wantStates(t, "a", "RUNNING")
}

// TestOldPlatform: one that takes no states is told so once, and asked again after it
// was started anew.
func TestOldPlatform(t *testing.T) {
	p := newPlatform(t)
	p.Behave(gateway.Conduct{Stateless: true})
	p.reports.Observe(ready("a"), false)
	eventually(t, 5*time.Second, func() string {
		p.reports.mu.Lock()
		defer p.reports.mu.Unlock()
		if !p.reports.off {
			return "it is told states"
		}
		return ""
	})
	for range 10 {
		p.reports.Observe(ready("b"), false)
		p.reports.Observe(ready("b"), true)
	}
	if s := p.reports.Status(); s.Unsent > 0 || len(p.reports.slots) != 1 {
		t.Errorf("it is %+v, of %d workloads", s, len(p.reports.slots))
	}
	if n := strings.Count(p.log.String(), "level=warning"); n != 1 {
		t.Errorf("it costs %d lines:\n%s", n, p.log)
	}
	p.Stop()
	p.Behave(gateway.Conduct{})
	p.start(t)
	p.wantStates(t, "a", "RUNNING")
}

// TestGoneAreBounded: of workloads that began and ended while the gateway was away,
// no more than so many ends are kept.
func TestGoneAreBounded(t *testing.T) {
	r := NewReports(nil, &counts{of: map[string]int{}}, logrus.New())
	for i := range goneLimit + 10 {
		id := fmt.Sprint(i)
		r.Observe(ready(id), false)
		r.Observe(ready(id), true)
	}
	if len(r.slots) != goneLimit || len(r.queue) != goneLimit || r.slots["9"] != nil || r.slots["10"] == nil {
		t.Errorf("%d are kept, %d queued", len(r.slots), len(r.queue))
	}
}
