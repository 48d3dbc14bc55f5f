// Package events streams Kubernetes Events.
package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/pager"

	"github.com/agynio/k8s-runner/workload"
)

const (
	// maxStreams bounds the streams at once.
	maxStreams = 256
	// retrySoon is when a caller may ask again.
	retrySoon = 2 * time.Second
)

// Pods knows the Pods there are.
type Pods interface {
	Get(id string) (*workload.State, bool)
}

// Streamer streams the Events of a namespace.
type Streamer struct {
	events typed.EventInterface
	pods   Pods
	log    *logrus.Logger

	mu      sync.Mutex
	streams int
	// done is closed when the runner ends.
	done   chan struct{}
	closed bool
}

// New returns a Streamer.
func New(client kubernetes.Interface, namespace string, pods Pods, log *logrus.Logger) *Streamer {
	return &Streamer{events: client.CoreV1().Events(namespace), pods: pods, log: log, done: make(chan struct{})}
}

// Shutdown ends all streams, and refuses what comes.
func (s *Streamer) Shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
}

// Stream sends the Events that are there and that req wants, in the order of their
// times, and then the new ones and those that change, until ctx ends. None is left
// out in between, and none is sent twice, also if a watch expires or the API server
// goes away for a while.
func (s *Streamer) Stream(ctx context.Context, req *workload.EventRequest, send func(workload.EventRecord) error) error {
	wanted, err := newFilter(req, s.pods)
	if err != nil {
		return err
	}
	if err := s.admit(); err != nil {
		return err
	}
	defer s.leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-s.done:
			cancel(shuttingDown())
		case <-stop:
		}
	}()
	t := &stream{streamer: s, wanted: wanted, send: send, sent: map[string]string{}}
	err = t.run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (s *Streamer) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return shuttingDown()
	case s.streams >= maxStreams:
		return workload.Errorf(workload.ResourceExhausted, "too_many_streams", "%d streams of events are open, and that is the limit", s.streams).Retry(retrySoon)
	}
	s.streams++
	return nil
}

func (s *Streamer) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

func shuttingDown() error {
	return workload.Errorf(workload.Unavailable, "shutting_down", "the runner shuts down").Retry(retrySoon)
}

// stream is one caller's.
type stream struct {
	streamer *Streamer
	wanted   *filter
	send     func(workload.EventRecord) error
	// sent has the version of each Event, by UID, that the caller has: as many as
	// the cluster keeps.
	sent map[string]string
}

// errCaller wraps what send returns.
type errCaller struct{ error }

func (e errCaller) Unwrap() error { return e.error }

// run lists and watches, again and again.
func (t *stream) run(ctx context.Context) error {
	for pause := newPause(); ; {
		version, err := t.list(ctx)
		for err == nil {
			pause = newPause()
			version, err = t.watch(ctx, version)
		}
		var gone errCaller
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &gone):
			return gone.error
		case apierrors.IsForbidden(err):
			return workload.Errorf(workload.PermissionDenied, "rbac_denied", "the runner's Role does not allow to list and watch events").Because(err)
		case expired(err):
			continue // a list says what happened since
		}
		t.streamer.log.WithError(err).Debug("a stream of events goes on when the API server answers")
		timer := time.NewTimer(pause.Step())
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func newPause() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 5 * time.Second}
}

func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// list sends the Events that the caller does not have, and returns the version to
// watch from.
func (t *stream) list(ctx context.Context) (version string, err error) {
	var found []*corev1.Event
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.FieldSelector = t.wanted.selector
		return t.streamer.events.List(ctx, o)
	})
	all, _, err := pages.ListWithAlloc(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("listing the events: %w", err)
	}
	there := map[string]string{}
	err = meta.EachListItem(all, func(item runtime.Object) error {
		e, ok := item.(*corev1.Event)
		if !ok {
			return fmt.Errorf("listing the events: there is a %T", item)
		}
		if old, known := t.sent[string(e.UID)]; known {
			there[string(e.UID)] = old
		}
		found = append(found, e)
		return nil
	})
	if err != nil {
		return "", err
	}
	t.sent = there // what is not there any more will not come back
	slices.SortStableFunc(found, func(a, b *corev1.Event) int { return at(a).Compare(at(b)) })
	for _, e := range found {
		if err := t.pass(e); err != nil {
			return "", err
		}
	}
	list, ok := all.(metav1.ListInterface)
	if !ok {
		return "", errors.New("listing the events: the answer is no list")
	}
	return list.GetResourceVersion(), nil
}

// watch sends what comes after version, and returns the version to go on from when
// the watch ends.
func (t *stream) watch(ctx context.Context, version string) (string, error) {
	w, err := t.streamer.events.Watch(ctx, metav1.ListOptions{
		FieldSelector: t.wanted.selector, ResourceVersion: version, AllowWatchBookmarks: true,
	})
	if err != nil {
		return "", fmt.Errorf("watching the events: %w", err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case change, open := <-w.ResultChan():
			if !open {
				return version, nil
			}
			if version, err = t.change(change, version); err != nil {
				return "", err
			}
		}
	}
}

// change takes one change of a watch at version, and returns the version after it.
func (t *stream) change(change watch.Event, version string) (string, error) {
	if change.Type == watch.Error {
		return "", fmt.Errorf("watching the events: %w", apierrors.FromObject(change.Object))
	}
	e, ok := change.Object.(*corev1.Event)
	if !ok {
		return version, nil
	}
	switch change.Type {
	case watch.Added, watch.Modified:
		if err := t.pass(e); err != nil {
			return "", err
		}
	case watch.Deleted:
		delete(t.sent, string(e.UID))
	default: // a bookmark
	}
	return e.ResourceVersion, nil
}

// pass sends e if the caller wants it and does not have it.
func (t *stream) pass(e *corev1.Event) error {
	if t.sent[string(e.UID)] == e.ResourceVersion || !t.wanted.matches(e) {
		return nil
	}
	record, err := newRecord(e)
	if err != nil {
		return err
	}
	if err := t.send(record); err != nil {
		return errCaller{err}
	}
	t.sent[string(e.UID)] = e.ResourceVersion
	return nil
}
