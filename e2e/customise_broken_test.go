//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/overrides/broken"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// starting is a client that starts one workload after another.
type starting struct {
	end   chan struct{}
	ended chan error
	count atomic.Int64
	// took is read after the end.
	took []time.Duration
}

// keepStarting starts workloads until stop is called.
func (r *runner) keepStarting(t testing.TB) *starting {
	s := &starting{end: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		for {
			select {
			case <-s.end:
				s.ended <- nil
				return
			default:
			}
			begin := time.Now()
			if _, err := r.StartWorkload(t.Context(), sleeper()); err != nil {
				s.ended <- err
				return
			}
			s.took = append(s.took, time.Since(begin))
			s.count.Add(1)
		}
	}()
	return s
}

// atLeast is nil once that many workloads were started.
func (s *starting) atLeast(many int64) error {
	if n := s.count.Load(); n < many {
		return fmt.Errorf("there were %d", n)
	}
	return nil
}

// stop waits for the last start and returns how long each took.
func (s *starting) stop(t testing.TB) []time.Duration {
	t.Helper()
	close(s.end)
	if err := <-s.ended; err != nil {
		t.Errorf("after %d starts one failed: %v", len(s.took), err)
	}
	if len(s.took) == 0 {
		t.Fatal("no workload was started")
	}
	return s.took
}

// wantDigest fails if another set of templates than that of digest made a Pod of r.
func (r *runner) wantDigest(t testing.TB, want string) {
	t.Helper()
	list, err := suite.admin.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if digest(&p) != want {
			t.Errorf("%s was made by %s, not by %s", p.Name, digest(&p), want)
		}
	}
}

// startShipped starts the runner as it is shipped, without the race detector,
// which makes a template without end take minutes.
func startShipped(t *testing.T, ns *namespace, flags ...string) *runner {
	t.Helper()
	binary, err := build(t.Context(), t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func(raced string) { suite.binary = raced }(suite.binary)
	suite.binary = binary
	return startRunner(t, ns, flags...)
}

// TestCustomiseShipped edits on one runner, as it is shipped, while a client starts
// workloads: what is good counts soon, what is bad never.
func TestCustomiseShipped(t *testing.T) {
	ns := newNamespace(t)
	classes := newClasses(t)
	classes.runtime(t, "kata-qemu")
	classes.priority(t, "high")
	r := startShipped(t, ns, "--catalog-path", tempFile(t, broken.Catalog), "--security-run-as-user", "1000")
	o := newOperator(t, ns)
	cordon(t, ns.name)
	t.Run("within a second", func(t *testing.T) { testWithinASecond(t, r, o) })
	deletePods(t, ns.name)

	good := digest(r.podOf(t, sleeper()))
	calm := r.keepStarting(t)
	eventually(t, 2*time.Minute, "there are starts to compare with", func() error { return calm.atLeast(200) })
	report(t, "before", calm.stop(t))
	t.Run("broken lines", func(t *testing.T) { testBrokenLines(t, r, o) })
	t.Run("bounds", func(t *testing.T) { testBounds(t, r, o) })
	r.wantDigest(t, good)
	log := r.log.String()
	if told := strings.Count(log, "templates rejected"); told != o.count("TemplatesRejected") || strings.Count(log, "msg=serving") != 1 {
		t.Errorf("the runner was started again, or an edit told more than once: of %d rejections, %d are in the log", o.count("TemplatesRejected"), told)
	}
}

// testBrokenLines lays the shipped templates with a line broken: each is rejected
// with its place.
func testBrokenLines(t *testing.T, r *runner, o *operator) {
	const wanted, seed = 200, 20261130
	shipped, err := templates.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	before := len(r.podNames(t))
	client := r.keepStarting(t)
	place := regexp.MustCompile(`(^|[ \n])broken/[a-z_-]+\.(yaml|tpl):\d+:`)
	rejected, begin := 0, time.Now()
	for b := range broken.Templates(shipped, seed) {
		if rejected == wanted {
			break
		}
		if b.Harmless {
			continue
		}
		verdict := o.verdict(t, o.lay(t, "broken", workload.TemplateFiles, map[string]string{b.File: b.Text}))
		rejected++
		if verdict.Reason != "TemplatesRejected" || !place.MatchString(verdict.Message) {
			t.Errorf("%s at %s:%d, %q, is %s: %s", b.How, b.File, b.Line, b.Broken(), verdict.Reason, verdict.Message)
		}
	}
	took := time.Since(begin).Round(time.Second)
	starts := client.stop(t)
	report(t, fmt.Sprintf("while %d edits of seed %d are rejected in %s", rejected, seed, took), starts)
	if made := len(r.podNames(t)) - before; rejected < wanted || made != len(starts) {
		t.Errorf("%d edits were rejected, and %d starts made %d Pods", rejected, len(starts), made)
	}
	o.remove(t, "broken")
}

// report logs how long starts took.
func report(t *testing.T, when string, starts []time.Duration) {
	t.Helper()
	t.Logf("%s, %d starts take p50 %s, p99 %s", when, len(starts), percentile(starts, 50).Round(time.Millisecond), percentile(starts, 99).Round(time.Millisecond))
}
