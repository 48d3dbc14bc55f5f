package logs

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agynio/k8s-runner/workload"
)

const id = "00000000-0000-4000-8000-00000000000a"

// node is an API server with a kubelet that reads log files as the real one does:
// a line of a file has a time and is whole or, with more to come, partial; a
// request reads the newest file from its beginning; one that follows goes over to
// a new file when there is one. A test breaks it as it likes.
type node struct {
	mu    sync.Mutex
	pod   *corev1.Pod
	files []*file
	// previous is the log of the run before.
	previous *file
	// changed is closed at the next change.
	changed chan struct{}
	conns   map[net.Conn]struct{}

	// down refuses connections; fails answers with a status; says is a fault that
	// the kubelet writes into the log at its end.
	down  bool
	fails int
	says  string
	// frozen makes a new answer that follows stay with its file; skips makes those
	// that are there go over to the newest file twice, as after two rotations.
	frozen, skips bool
	// mute answers bring nothing, nor do they end.
	mute bool
	// short answers end after so many lines, once, as well as any other: the kubelet has
	// died.
	short int
	// early makes the kubelet see the container only later than the API server.
	early bool

	logs, gets int
	listener   chan net.Conn
	seen       func(*workload.State) bool
}

type file struct{ lines []fileLine }

type fileLine struct {
	at      time.Time
	data    string
	partial bool
}

// onNode runs test with a node whose container main runs. Time is not real, and
// a goroutine that stays behind fails the test.
func onNode(t *testing.T, test func(t *testing.T, n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &node{
			files: []*file{{}}, changed: make(chan struct{}), listener: make(chan net.Conn), conns: map[net.Conn]struct{}{},
			pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "workload-" + id, UID: types.UID("uid")},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning},
			},
		}
		n.status(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		server := &http.Server{Handler: n}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(n)
		}()
		defer func() {
			close(n.listener)
			_ = server.Close()
			<-served
		}()
		test(t, n)
	})
}

// Accept, Close and Addr make it a listener.
func (n *node) Accept() (net.Conn, error) {
	conn, ok := <-n.listener
	if !ok {
		return nil, io.EOF
	}
	return conn, nil
}
func (n *node) Close() error   { return nil }
func (n *node) Addr() net.Addr { return &net.UnixAddr{} }

func (n *node) dial(context.Context, string, string) (net.Conn, error) {
	n.mu.Lock()
	if n.down {
		n.mu.Unlock()
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	n.conns[client] = struct{}{}
	n.mu.Unlock()
	n.listener <- server
	return client, nil
}

// cut breaks all connections.
func (n *node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for conn := range n.conns {
		_ = conn.Close()
		delete(n.conns, conn)
	}
}

// set changes the node unseen.
func (n *node) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// change changes the node, and wakes those who follow and the cache.
func (n *node) change(change func()) {
	n.mu.Lock()
	change()
	close(n.changed)
	n.changed = make(chan struct{})
	seen, state := n.seen, n.state()
	n.mu.Unlock()
	if seen != nil && seen(state) {
		n.mu.Lock()
		n.seen = nil
		n.mu.Unlock()
	}
}

// Follow is the cache's.
func (n *node) Follow(ctx context.Context, _ string, seen func(*workload.State) bool) error {
	gone := make(chan struct{})
	tell := func(s *workload.State) bool {
		if !seen(s) {
			return false
		}
		close(gone)
		return true
	}
	n.mu.Lock()
	state := n.state()
	n.seen = tell
	n.mu.Unlock()
	if tell(state) {
		n.mu.Lock()
		n.seen = nil
		n.mu.Unlock()
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// state is what the cache shows. The caller holds n.mu.
func (n *node) state() *workload.State {
	if n.pod == nil {
		return nil
	}
	s := &workload.State{ID: id, UID: string(n.pod.UID)}
	for _, c := range n.pod.Status.ContainerStatuses {
		status := workload.Waiting
		switch {
		case c.State.Running != nil:
			status = workload.Running
		case c.State.Terminated != nil:
			status = workload.Terminated
		}
		s.Containers = append(s.Containers, workload.ContainerState{Name: c.Name, Status: status, Restarts: c.RestartCount})
	}
	return s
}

// status sets the state of the container.
func (n *node) status(state corev1.ContainerState) {
	n.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state}}
}

// write writes lines into the newest file, all at this time. What comes after it is
// later.
func (n *node) write(lines ...string) {
	n.change(func() {
		f := n.files[len(n.files)-1]
		for _, l := range lines {
			f.lines = append(f.lines, fileLine{at: time.Now(), data: l})
		}
	})
	time.Sleep(time.Millisecond)
}

func (n *node) rotate() { n.change(func() { n.files = append(n.files, &file{}) }) }

// end ends the container.
func (n *node) end() {
	n.change(func() {
		n.status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}})
	})
}

// remove deletes the Pod.
func (n *node) remove() { n.change(func() { n.pod = nil }) }

// reading is one request for a log.
// stream is the kubelet's ReadLogs.
// dies reports whether the kubelet dies before line i of an answer.
// running is what the container runtime says: a Pod that is gone still stops. The
// caller holds n.mu.
