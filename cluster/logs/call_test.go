package logs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/agynio/k8s-runner/workload"
)

func (n *node) client(t *testing.T) *Logs {
	t.Helper()
	transport := &http.Transport{DialContext: n.dial, DisableKeepAlives: true}
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://node", QPS: -1}, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods("workloads")
	return New(pods, pods, n)
}

type call struct {
	req  workload.LogRequest
	mu   sync.Mutex
	text strings.Builder
	at   []time.Time
	// hold makes the caller slow: each piece waits for an item.
	hold   chan struct{}
	cancel context.CancelCauseFunc
	done   chan error
}

func (n *node) follow(t *testing.T, change ...func(*call)) *call {
	t.Helper()
	c := &call{done: make(chan error, 1)}
	c.req = workload.LogRequest{Target: workload.Target{ID: id, UID: "uid", Container: "main"}, Follow: true}
	for _, f := range change {
		f(c)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	c.cancel = cancel
	logs := n.client(t)
	go func() { c.done <- logs.Stream(ctx, &c.req, c.take) }()
	return c
}

func (c *call) take(p workload.LogPiece) error {
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p.Data)
	c.at = append(c.at, p.At)
	return nil
}

func (c *call) takes(pieces int) {
	for range pieces {
		synctest.Wait()
		select {
		case c.hold <- struct{}{}:
		default:
		}
	}
	synctest.Wait()
}

func (c *call) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func numbered(from, to int) (lines []string) {
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	return lines
}

func (c *call) wantAll(t *testing.T, last int) {
	t.Helper()
	c.want(t, strings.Join(numbered(1, last), "\n")+"\n")
}

func (c *call) want(t *testing.T, want string) {
	t.Helper()
	got := c.String()
	if got == want {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Fatalf("%d bytes instead of %d; from byte %d on it is %.100q instead of %.100q", len(got), len(want), at, got[at:], want[at:])
}

func (c *call) wantEnd(t *testing.T, token string) {
	t.Helper()
	err := <-c.done
	var domain *workload.Error
	switch errors.As(err, &domain); {
	case token == "" && err != nil:
		t.Errorf("it ends with %v", err)
	case token != "" && (domain == nil || domain.Token != token):
		t.Errorf("it ends with %v instead of %s", err, token)
	case token != "" && (domain.Kind == workload.Unavailable) != (domain.RetryAfter > 0) && token != "runner_credential_rejected":
		t.Errorf("%s has RetryAfter %v", token, domain.RetryAfter)
	}
}
