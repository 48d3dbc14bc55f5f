package again

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/agynio/k8s-runner/workload"
)

var errDown = errors.New("connection refused")

// TestPauses get longer as long as nothing comes.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pauses{}
		for i, c := range []struct {
			attempt Attempt
			want    time.Duration
		}{
			{Attempt{Err: errDown, First: AtOnce}, AtOnce},
			{Attempt{Err: errDown, First: AtOnce}, 2 * AtOnce},
			{Attempt{Err: errDown, First: AtOnce, Answered: true}, 4 * AtOnce},
			{Attempt{Err: errDown, First: time.Second}, time.Second},
			{Attempt{Err: errDown, First: AtOnce}, 2 * time.Second},
			{Attempt{Err: errDown, First: AtOnce}, 2 * time.Second},
			{Attempt{Err: errDown, First: AtOnce, Moved: true}, AtOnce},
			{Attempt{Err: apierrors.NewTooManyRequests("busy", 5), First: AtOnce}, 5 * time.Second},
			{Attempt{Err: apierrors.NewTooManyRequests("busy", 500), First: AtOnce}, patience},
		} {
			if got, err := p.After(c.attempt); got != c.want || err != nil {
				t.Errorf("pause %d is %v, %v", i, got, err)
			}
		}
	})
}

func TestGivingUp(t *testing.T) {
	group := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err   error
		after time.Duration
		token string
	}{
		"in time":       {errDown, Limit, ""},
		"too late":      {errDown, Limit + 1, "kubernetes_unavailable"},
		"no credential": {apierrors.NewUnauthorized("x"), Limit + 1, "runner_credential_rejected"},
		"not allowed":   {apierrors.NewForbidden(group, "x", nil), 0, "runner_not_allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Pauses{What: "read"}
				_, err := p.After(Attempt{Err: c.err})
				if c.after > 0 {
					time.Sleep(c.after)
					_, err = p.After(Attempt{Err: c.err})
				}
				var domain *workload.Error
				if errors.As(err, &domain) != (c.token != "") || domain != nil && (domain.Token != c.token || !errors.Is(err, c.err)) {
					t.Errorf("it returns %v", err)
				}
			})
		})
	}
}

// TestAnAnswerEndsTheFailure: the time counts from the last answer on.
func TestAnAnswerEndsTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pauses{}
		for i := range 10 {
			if _, err := p.After(Attempt{Err: errDown, Answered: i%2 == 0}); err != nil {
				t.Error(err)
			}
			time.Sleep(Limit - 1)
		}
	})
}

// TestRefusedForAWhile: an API server that has just been started refuses what it
// allowed before, also after a long outage; if it goes on so, it means it.
func TestRefusedForAWhile(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", nil)
	synctest.Test(t, func(t *testing.T) {
		p := &Pauses{What: "read"}
		after := func(a Attempt) error {
			_, err := p.After(a)
			return err
		}
		err := errors.Join(after(Attempt{Err: errDown, Answered: true}), after(Attempt{Err: errDown}))
		time.Sleep(Limit - roleLimit)
		err = errors.Join(err, after(Attempt{Err: refused}))
		time.Sleep(roleLimit - 1)
		err = errors.Join(err, after(Attempt{Err: refused}), after(Attempt{Err: errDown, Answered: true}), after(Attempt{Err: refused}))
		if err != nil {
			t.Errorf("it returns %v", err)
		}
		time.Sleep(roleLimit)
		var domain *workload.Error
		if err := after(Attempt{Err: refused}); !errors.As(err, &domain) || domain.Token != "runner_not_allowed" {
			t.Errorf("after %v it returns %v", roleLimit, err)
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := Wait(t.Context(), time.Second, nil); err != nil || time.Since(begin) != time.Second {
			t.Errorf("it waits %v, and returns %v", time.Since(begin), err)
		}
		wake := make(chan struct{}, 1)
		wake <- struct{}{}
		if err := Wait(t.Context(), time.Second, wake); err != nil || time.Since(begin) != time.Second {
			t.Errorf("woken, it waits %v, and returns %v", time.Since(begin), err)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := Wait(ctx, time.Hour, nil); !errors.Is(err, why) {
			t.Errorf("at the end of its caller it returns %v", err)
		}
	})
}
