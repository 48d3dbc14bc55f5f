//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lane is a runner in a namespace of its own behind a faulty proxy, and its caller.
type lane struct {
	*testing.T
	ns     *namespace
	flags  []string
	proxy  *faulty
	runner *runner
	grace  time.Duration
	tokens map[string]string
}

// newLane starts a runner.
func newLane(t *testing.T, policies bool) *lane {
	t.Helper()
	l := &lane{T: t, proxy: newFaulty(t), grace: 10 * time.Second, tokens: documentedErrors(t)}
	l.ns = newNamespace(t).through(t, l.proxy.URL, l.proxy.ca())
	newClaim(t, l.ns.name, foreignClaim, "", func(c *corev1.PersistentVolumeClaim) { c.Labels = nil })
	l.flags = []string{fmt.Sprintf("--network-policy-enabled=%v", policies), "--starts-grace=" + l.grace.String()}
	l.startRunner()
	return l
}

func (l *lane) startRunner() {
	l.runner = startRunner(l.T, l.ns, l.flags...)
	process := l.runner.process.Process
	l.proxy.watchOver(func() { _ = process.Kill() })
}

// revive starts a new runner if the last one was killed.
func (l *lane) revive() {
	l.Helper()
	if !l.proxy.hasKilled() {
		return
	}
	<-l.runner.exited
	l.runner.process = nil
	l.runner.conn.Close()
	if strings.Contains(l.runner.log.String(), "DATA RACE") {
		l.Errorf("the runner has a data race\n%s", l.runner.log)
	}
	l.proxy.idle(l)
	l.startRunner()
}

// perform makes the calls at the same time, and again, until each has an answer
// or its caller has given up, and notes in the model what he learns.
func (l *lane) perform(ctx context.Context, m *model, ops []*op) error {
	for pending := ops; len(pending) > 0; {
		l.revive()
		var calls sync.WaitGroup
		for _, o := range pending {
			calls.Go(func() { o.try(ctx, l.runner) })
		}
		calls.Wait()
		var left []*op
		var pause time.Duration
		for _, o := range pending {
			l.proxy.note("%s, try %d: %v", o, o.tries, o.err)
			if err := l.told(o); err != nil {
				return fmt.Errorf("%s: %w", o, err)
			}
			again, after := o.again()
			if again && !o.givesUp {
				if o.tries == maxCalls {
					return fmt.Errorf("%s: after %d tries still %w", o, o.tries, o.err)
				}
				left, pause = append(left, o), max(pause, after)
				continue
			}
			if err := m.learn(o, again); err != nil {
				return fmt.Errorf("%s: %w", o, err)
			}
		}
		pending = left
		time.Sleep(pause)
	}
	l.proxy.idle(l) // one that has been heard of may kill yet
	l.revive()
	return nil
}

// told checks that an error is one that docs/errors.md explains, with its code, or
// one of gRPC's own that there was a reason for.
func (l *lane) told(o *op) error {
	s := status.Convert(o.err)
	info := detail[*errdetails.ErrorInfo](s)
	switch {
	case o.err == nil:
		return nil
	case info == nil && s.Code() == codes.DeadlineExceeded: // the caller's own
		return nil
	case info == nil && s.Code() == codes.Unavailable && l.proxy.hasKilled():
		return nil
	}
	code, ok := l.tokens[token(o.err)]
	if !ok || !strings.Contains(code, s.Code().String()) || s.Code() == codes.Internal || !strings.EqualFold(info.GetReason(), token(o.err)) {
		return fmt.Errorf("the error is not documented: %w", o.err)
	}
	return nil
}

// token is what the message of an error begins with.
func token(err error) string {
	word, _, _ := strings.Cut(status.Convert(err).Message(), ":")
	return word
}

// documentedErrors returns the codes of the tokens that docs/errors.md explains.
func documentedErrors(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, "|"); len(cells) >= 4 {
			for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[2], -1) {
				codes[m[1]] = cells[1]
			}
		}
	}
	return codes
}

// wantKnown waits until the world is as the caller knows it, and nothing is left.
func (l *lane) wantKnown(ctx context.Context, m *model, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		w, err := look(ctx, l.ns.name, m.run)
		if err == nil {
			err = m.compare(w, l.grace+limit)
		}
		if err == nil {
			err = w.orphans()
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// clear deletes what a run has made, but not its unfinished starts if the runner
// is to do that.
func (l *lane) clear(ctx context.Context, m *model) {
	all := metav1.ListOptions{LabelSelector: runLabel + "=" + m.run}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	core := suite.admin.CoreV1()
	pods, err := core.Pods(l.ns.name).List(ctx, all)
	if err != nil {
		l.Errorf("listing the Pods: %v", err)
		return
	}
	for _, pod := range pods.Items {
		if !isGated(pod) {
			_ = core.Pods(l.ns.name).Delete(ctx, pod.Name, now) // if it is there
		}
	}
	if err := core.PersistentVolumeClaims(l.ns.name).DeleteCollection(ctx, now, all); err != nil {
		l.Errorf("deleting the claims: %v", err)
	}
}
