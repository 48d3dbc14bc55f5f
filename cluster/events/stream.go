package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/agynio/k8s-runner/cluster/again"
	"github.com/agynio/k8s-runner/workload"
)

const (
	// pageSize is how many events a request for a list brings.
	pageSize = 500
	// watchLimit is how long a watch lasts, or up to twice as long: one that has
	// frozen brings nothing until it is begun anew.
	watchLimit = 5 * time.Minute
	// lateLimit bounds how much later than asked for a watch ends, or a list comes.
	lateLimit = 30 * time.Second
)

// stream is one call of Stream.
type stream struct {
	*Events
	req      *workload.EventRequest
	send     func(workload.EventRecord) error
	selector string

	// listed is true once the events that were there were sent, until a watch cannot
	// go on from there.
	listed bool
	// version is the resource version up to which everything was sent.
	version int64
	// earlier are UIDs of Pods that are no more the one of their name.
	earlier map[string]bool
	// answered and moved are true if in this attempt the API server answered, and if
	// it brought something.
	answered, moved bool
}

var (
	errEnded = errors.New("the watch has ended")
	// errExpired is that the API server has forgotten what came after a version.
	errExpired = errors.New("the version has expired")
)

// all lists, and then watches, again and again.
func (s *stream) all(ctx context.Context) error {
	pauses := &again.Pauses{What: "read events"}
	for {
		s.answered, s.moved = false, false
		err := s.round(ctx)
		var unsent again.Unsent
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &unsent):
			return unsent.Err
		case err == nil:
			continue
		}
		pause, err := pauses.After(again.Attempt{Err: err, Answered: s.answered, Moved: s.moved, First: again.AtOnce})
		if err != nil {
			return err
		}
		if err := again.Wait(ctx, pause, nil); err != nil {
			return err
		}
	}
}

// round brings the caller up to date, or keeps him so for a while.
func (s *stream) round(ctx context.Context) error {
	if !s.listed {
		if err := s.list(ctx); err != nil {
			return fmt.Errorf("listing events: %w", expired(err))
		}
		s.listed = true
		return nil
	}
	err := expired(s.follow(ctx))
	s.listed = !errors.Is(err, errExpired)
	return fmt.Errorf("watching events: %w", err)
}

// expired marks the errors after which a list has to begin anew.
func expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w: %w", errExpired, err)
	}
	return err
}

// list sends the events that are there. Those that are as old as the version were
// sent before.
func (s *stream) list(ctx context.Context) error {
	var found []*corev1.Event
	opts := metav1.ListOptions{FieldSelector: s.selector, Limit: pageSize}
	for {
		page, err := s.page(ctx, opts)
		if err != nil {
			return err
		}
		for i := range page.Items {
			event := &page.Items[i]
			wanted, err := s.wants(ctx, event)
			if err != nil {
				return err
			}
			if wanted && number(event.ResourceVersion) > s.version {
				found = append(found, event)
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return s.catchUp(found, number(page.ResourceVersion))
		}
	}
}

// catchUp sends all that has happened up to a version.
func (s *stream) catchUp(events []*corev1.Event, version int64) error {
	slices.SortFunc(events, func(a, b *corev1.Event) int {
		return cmp.Or(at(a).Compare(at(b)), cmp.Compare(number(a.ResourceVersion), number(b.ResourceVersion)))
	})
	for _, event := range events {
		if err := s.pass(event); err != nil {
			return err
		}
	}
	s.version = version
	return nil
}

func (s *stream) page(ctx context.Context, opts metav1.ListOptions) (*corev1.EventList, error) {
	ctx, cancel := context.WithTimeout(ctx, lateLimit)
	defer cancel()
	page, err := s.events.List(ctx, opts)
	s.answered = s.answered || err == nil
	return page, err
}

// follow sends what happens after the version, as long as the watch lasts.
func (s *stream) follow(ctx context.Context) error {
	limit := watchLimit + rand.N(watchLimit) //nolint:gosec // so that not all watches end at one time
	ctx, cancel := context.WithTimeout(ctx, limit+lateLimit)
	defer cancel()
	seconds := int64(limit.Seconds())
	w, err := s.events.Watch(ctx, metav1.ListOptions{
		FieldSelector: s.selector, ResourceVersion: strconv.FormatInt(s.version, 10),
		AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	s.answered = true
	for change := range w.ResultChan() {
		if err := s.take(ctx, change); err != nil {
			return err
		}
	}
	return errEnded
}

// take takes a change that a watch brings.
func (s *stream) take(ctx context.Context, change watch.Event) error {
	if change.Type == watch.Error {
		return apierrors.FromObject(change.Object)
	}
	event, ok := change.Object.(*corev1.Event)
	if !ok {
		return fmt.Errorf("the watch brings %T", change.Object)
	}
	// That one is deleted is of no interest: Kubernetes keeps events for an hour.
	if change.Type == watch.Added || change.Type == watch.Modified {
		wanted, err := s.wants(ctx, event)
		if err != nil {
			return err // the next watch brings it again
		}
		if wanted {
			if err := s.pass(event); err != nil {
				return err
			}
		}
	}
	s.version = max(s.version, number(event.ResourceVersion))
	return nil
}

// wants reports whether an event is one for the caller.
func (s *stream) wants(ctx context.Context, event *corev1.Event) (bool, error) {
	if !meets(event, s.req.Filters) || at(event).Before(s.req.Since) {
		return false, nil
	}
	earlier, err := s.ofEarlierPod(ctx, event)
	return !earlier, err
}

// pass sends an event.
func (s *stream) pass(event *corev1.Event) error {
	record, err := recordOf(event)
	if err != nil {
		return err
	}
	if err := s.send(record); err != nil {
		return again.Unsent{Err: err}
	}
	s.moved = true
	return nil
}

// number is a resource version as a number, as which it can be compared.
func number(version string) int64 {
	n, _ := strconv.ParseInt(version, 10, 64) // the API server makes no others
	return n
}
