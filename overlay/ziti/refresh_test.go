package ziti

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agynio/k8s-runner/overlay"
)

// TestDeletedIdentity asks a controller through the SDK itself: every answer after the
// deletion is a refusal, whatever form the SDK gives it.
func TestDeletedIdentity(t *testing.T) {
	c := newController(t, false)
	log, written := lineLog()
	n := newFor(t, c, log)
	if err := n.Refresh(t.Context()); err != nil {
		t.Fatalf("before the deletion: %v", err)
	}
	c.delete()
	for range 4 {
		if err := n.Refresh(t.Context()); !errors.Is(err, overlay.ErrUnauthorized) {
			t.Errorf("after the deletion: %v, want %v", err, overlay.ErrUnauthorized)
		}
	}
	if _, err := n.Listen(t.Context()); !errors.Is(err, overlay.ErrUnauthorized) {
		t.Errorf("binding after the deletion: %v, want %v", err, overlay.ErrUnauthorized)
	}
	wantClean(t, written.String())
	if text := written.String(); !strings.Contains(text, "part=ziti") {
		t.Errorf("the SDK's lines are not in the log:\n%s", text)
	}
}

// TestDeadIdentity is a start with one, of controllers old and new.
func TestDeadIdentity(t *testing.T) {
	for name, oidc := range map[string]bool{"sessions": false, "OIDC": true} {
		t.Run(name, func(t *testing.T) {
			c := newController(t, oidc)
			c.delete()
			log, written := lineLog()
			n := newFor(t, c, log)
			if _, err := n.Listen(t.Context()); !errors.Is(err, overlay.ErrUnauthorized) {
				t.Errorf("binding: %v, want %v", err, overlay.ErrUnauthorized)
			}
			wantClean(t, written.String())
		})
	}
}

// TestUnknownService is not about the identity.
func TestUnknownService(t *testing.T) {
	log, _ := lineLog()
	n := newFor(t, newController(t, false), log)
	_, err := n.Listen(t.Context())
	if err == nil || errors.Is(err, overlay.ErrUnauthorized) || !strings.Contains(err.Error(), "runner-1") {
		t.Errorf("binding: %v, want an error that names the service and does not blame the identity", err)
	}
}

// TestSilence: a controller that does not answer is not waited for, and says nothing
// about the identity.
func TestSilence(t *testing.T) {
	c := newController(t, false)
	answer := c.silence()
	t.Cleanup(answer)
	log, written := lineLog()
	n := newFor(t, c, log)
	for _, ask := range []func(context.Context) error{
		n.Refresh,
		func(ctx context.Context) error {
			_, err := n.Listen(ctx)
			return err
		},
	} {
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := ask(ctx)
		stop()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, overlay.ErrUnauthorized) {
			t.Errorf("asking: %v, want %v", err, context.DeadlineExceeded)
		}
	}
	answer()
	if err := n.Refresh(t.Context()); err != nil {
		t.Errorf("after the silence: %v", err)
	}
	wantClean(t, written.String())
}
