package events

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

const id = "00000000-0000-4000-8000-00000000000a"

// server is an API server's store of events, and its Pod.
type server struct {
	clientv1.EventInterface

	mu      sync.Mutex
	version int64
	events  map[string]*corev1.Event
	log     []watch.Event
	// forgotten is the version up to which changes are no more known.
	forgotten int64
	watches   map[*watcher]struct{}
	pageSize  int

	// err is what every call answers; frozen watches bring nothing; afterList is
	// called once between a list and what comes next, onPage before a page but the
	// first.
	err       error
	frozen    bool
	afterList func()
	onPage    func() error

	// podUID is that of the Pod, cachedUID what the cache shows.
	podUID, cachedUID string
	calls             map[string]int
}

type watcher struct {
	out  chan watch.Event
	stop chan struct{}
	once sync.Once
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.out }
func (w *watcher) Stop()                          { w.once.Do(func() { close(w.stop) }) }

func newServer() *server {
	return &server{version: 100, events: map[string]*corev1.Event{}, watches: map[*watcher]struct{}{}, calls: map[string]int{}, pageSize: 3}
}

// put creates or changes an event.
func (s *server) put(name string, change ...func(*corev1.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, event := watch.Modified, s.events[name]
	if event == nil {
		kind = watch.Added
		event = &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: "workloads", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "workload-" + id, UID: "uid"},
		}
	}
	event = event.DeepCopy()
	event.Count++
	event.LastTimestamp = metav1.Now()
	for _, c := range change {
		c(event)
	}
	s.record(kind, event)
}

// record stores a change. The caller holds s.mu.
func (s *server) record(kind watch.EventType, event *corev1.Event) {
	s.version++
	event.ResourceVersion = strconv.FormatInt(s.version, 10)
	s.events[event.Name] = event
	if kind == watch.Deleted {
		delete(s.events, event.Name)
	}
	s.log = append(s.log, watch.Event{Type: kind, Object: event.DeepCopy()})
	for w := range s.watches {
		s.bring(w, s.log[len(s.log)-1])
	}
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(watch.Deleted, s.events[name].DeepCopy())
}

// bring gives a change to a watch, which has room for all of a test.
func (s *server) bring(w *watcher, change watch.Event) {
	if !s.frozen {
		w.out <- change
	}
}

// expire forgets all changes, and tells so those who watch, if told.
func (s *server) expire(told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = s.version
	if told {
		s.tell(apierrors.NewResourceExpired("too old resource version").ErrStatus)
	}
}

// tell ends all watches with a status. The caller holds s.mu.
func (s *server) tell(status metav1.Status) {
	for w := range s.watches {
		s.bring(w, watch.Event{Type: watch.Error, Object: &status})
		s.end(w)
	}
}

func (s *server) end(w *watcher) {
	if _, there := s.watches[w]; there {
		delete(s.watches, w)
		close(w.out)
	}
}

// cut ends all watches.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		s.end(w)
	}
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) List(_ context.Context, opts metav1.ListOptions) (*corev1.EventList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["list "+opts.FieldSelector]++
	if s.err != nil {
		return nil, s.err
	}
	names := make([]string, 0, len(s.events))
	for name := range s.events {
		names = append(names, name)
	}
	slices.Sort(names)
	from := 0
	if opts.Continue != "" {
		if s.onPage != nil {
			hook := s.onPage
			s.onPage = nil
			if err := hook(); err != nil {
				return nil, err
			}
		}
		from, _ = strconv.Atoi(opts.Continue)
	}
	to := min(len(names), from+s.pageSize)
	list := &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.version, 10)}}
	for _, name := range names[from:to] {
		list.Items = append(list.Items, *s.events[name].DeepCopy())
	}
	if to < len(names) {
		list.Continue = strconv.Itoa(to)
	} else if s.afterList != nil {
		hook := s.afterList
		s.afterList = nil
		s.mu.Unlock()
		hook()
		s.mu.Lock()
	}
	return list, nil
}

func (s *server) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["watch "+opts.FieldSelector]++
	version := number(opts.ResourceVersion)
	switch {
	case s.err != nil:
		return nil, s.err
	case version < s.forgotten:
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	w := &watcher{out: make(chan watch.Event, 1000), stop: make(chan struct{})}
	for _, change := range s.log {
		if event, _ := change.Object.(*corev1.Event); number(event.ResourceVersion) > version {
			s.bring(w, change)
		}
	}
	s.watches[w] = struct{}{}
	go func() {
		select {
		case <-w.stop:
		case <-ctx.Done():
		case <-time.After(time.Duration(*opts.TimeoutSeconds) * time.Second):
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end(w)
	}()
	return w, nil
}

type pods struct{ *server }

func (p pods) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls["get"]++
	if p.err != nil {
		return nil, p.err
	}
	if p.podUID == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(p.podUID)}}, nil
}

type cache struct{ *server }

func (c cache) Get(string) (*workload.State, bool) {
	return &workload.State{ID: id, UID: c.cachedUID}, c.cachedUID != ""
}

// call is a stream and what it has brought.
// call calls Stream.
// want wants events, each as name/count.
// end ends the call.
// wantEnd wants the call to end with a token.
