package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

type call struct {
	req    workload.EventRequest
	mu     sync.Mutex
	got    []string
	json   []string
	fail   error
	cancel context.CancelCauseFunc
	done   chan error
}

func (s *server) call(t *testing.T, req workload.EventRequest) *call {
	t.Helper()
	c := &call{req: req, done: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(t.Context())
	c.cancel = cancel
	events := New(s, pods{s}, cache{s})
	go func() { c.done <- events.Stream(ctx, &c.req, c.take) }()
	return c
}

func (c *call) take(r workload.EventRecord) error {
	var event corev1.Event
	if err := json.Unmarshal([]byte(r.JSON), &event); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, fmt.Sprintf("%s/%d", event.Name, event.Count))
	c.json = append(c.json, r.JSON)
	return c.fail
}

func (c *call) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := strings.Join(c.got, " "); got != strings.Join(want, " ") {
		t.Errorf("it has brought\n%s instead of\n%s", got, strings.Join(want, " "))
	}
}

func (c *call) end() {
	c.cancel(nil)
	<-c.done
}

func (c *call) wantEnd(t *testing.T, token string) {
	t.Helper()
	err := <-c.done
	var domain *workload.Error
	if !errors.As(err, &domain) || domain.Token != token {
		t.Errorf("it ends with %v instead of %s", err, token)
	}
}
