package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	fails, pod := n.fails, n.pod
	n.mu.Unlock()
	switch {
	case fails != 0:
		reply(w, fails, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(fails), Reason: reasonOf(fails)})
	case pod == nil:
		reply(w, 404, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound})
	case strings.HasSuffix(r.URL.Path, "/log"):
		n.serveLog(w, r)
	default:
		n.mu.Lock()
		n.gets++
		pod := n.pod.DeepCopy()
		n.mu.Unlock()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		reply(w, 200, pod)
	}
}

func reasonOf(code int) metav1.StatusReason {
	return map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden,
		429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
	}[code]
}

func reply(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// reading is one request for a log.
type reading struct {
	follow     bool
	since      time.Time
	out        *http.ResponseController
	w          io.Writer
	insideLine bool
}

func (n *node) serveLog(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	rd := &reading{follow: query.Get("follow") == "true", out: http.NewResponseController(w), w: w}
	if text := query.Get("sinceTime"); text != "" {
		rd.since, _ = time.Parse(time.RFC3339, text)
	}
	n.mu.Lock()
	n.logs++
	f, frozen := n.files[len(n.files)-1], n.frozen
	if query.Get("previous") == "true" {
		f = n.previous
	}
	from := 0
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		from = max(0, len(f.lines)-tail)
	}
	n.mu.Unlock()
	_ = rd.out.Flush()
	n.stream(r.Context(), rd, f, from, frozen)
}

// stream is the kubelet's ReadLogs.
func (n *node) stream(ctx context.Context, rd *reading, f *file, from int, frozen bool) {
	for {
		n.mu.Lock()
		lines, changed, says := f.lines[from:], n.changed, n.says
		newest, skips := n.files[len(n.files)-1], n.skips
		running, mute := !n.early && n.running(), n.mute
		n.mu.Unlock()
		if mute {
			<-ctx.Done()
			return
		}
		for _, l := range lines {
			if rd.write(l) != nil {
				return
			}
		}
		from += len(lines)
		_ = rd.out.Flush()
		switch {
		case len(lines) > 0:
			continue
		case says != "" && rd.follow:
			_, _ = io.WriteString(rd.w, says)
			return
		case !rd.follow:
			return
		case newest != f && !frozen:
			if skips {
				n.stream(ctx, &reading{out: rd.out, w: rd.w}, newest, 0, false)
			}
			f, from = newest, 0
			continue
		case !running:
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// running is what the container runtime says: a Pod that is gone still stops. The
// caller holds n.mu.
func (n *node) running() bool {
	if n.pod == nil {
		return true
	}
	statuses := n.pod.Status.ContainerStatuses
	return len(statuses) > 0 && statuses[0].State.Running != nil
}

func (rd *reading) write(l fileLine) error {
	text := l.data
	if !rd.insideLine {
		text = l.at.Format("2006-01-02T15:04:05.000000000Z07:00") + " " + text
	}
	if !l.partial {
		text += "\n"
	}
	rd.insideLine = l.partial
	if l.at.Before(rd.since) {
		return nil
	}
	_, err := io.WriteString(rd.w, text)
	return err
}

// logs returns the logs of the node.
func (n *node) client(t *testing.T) *Logs {
	t.Helper()
	transport := &http.Transport{DialContext: n.dial, DisableKeepAlives: true}
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://node", QPS: -1}, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return New(client.CoreV1().Pods("workloads"), n)
}

// call is a stream and what it has brought.
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

// follow calls Stream, with a request that a test may change.
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

// takes lets a slow caller take pieces, as far as there are any.
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

// numbered are the lines from..to.
func numbered(from, to int) (lines []string) {
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	return lines
}

// wantAll wants the lines 1..last, and nothing else.
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

// wantEnd wants the stream to end with a token, or well if that is empty.
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
