//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// logCall is a StreamWorkloadLogs and what it has brought.
type logCall struct {
	mu    sync.Mutex
	data  bytes.Buffer
	times []time.Time
	// err is that of the end, once done is closed.
	err  error
	done chan struct{}
	stop context.CancelFunc
}

// logs calls StreamWorkloadLogs, and reads until its end in the background.
func (r *runner) logs(t testing.TB, req *runnerv1.StreamWorkloadLogsRequest) *logCall {
	t.Helper()
	if req.GetContainerName() == "" {
		req.ContainerName = "main"
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &logCall{done: make(chan struct{}), stop: cancel}
	stream, err := r.StreamWorkloadLogs(ctx, req)
	if err != nil {
		t.Fatalf("StreamWorkloadLogs: %v", err)
	}
	go func() {
		defer close(c.done)
		defer cancel()
		for {
			answer, err := stream.Recv()
			if err != nil {
				c.err = err
				return
			}
			c.mu.Lock()
			c.data.Write(answer.GetChunk().GetData())
			c.times = append(c.times, answer.GetChunk().GetTs().AsTime())
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-c.done
	})
	return c
}

func (r *runner) follow(t testing.TB, id string) *logCall {
	t.Helper()
	return r.logs(t, &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id, Follow: true})
}

func (c *logCall) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data.String()
}

// wait waits for the end, and returns its code.
func (c *logCall) wait(t testing.TB, limit time.Duration) codes.Code {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(limit):
		t.Fatalf("the log has no end; %d bytes have come, the last ones %q", len(c.text()), last(c.text(), 200))
	}
	if c.err.Error() == "EOF" {
		return codes.OK
	}
	return status.Code(c.err)
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// wantOK wants a log to end well with text.
func (c *logCall) wantOK(t testing.TB, text string) {
	t.Helper()
	if code := c.wait(t, time.Minute); code != codes.OK {
		t.Fatalf("the log ends with %v", c.err)
	}
	if got := c.text(); got != text {
		t.Errorf("the log is %.300q (%d bytes) instead of %.300q (%d)", got, len(got), text, len(text))
	}
}

// awaits waits until the log ends with text.
func (c *logCall) awaits(t testing.TB, text string) {
	t.Helper()
	eventually(t, 30*time.Second, fmt.Sprintf("the log has %q", text), func() error {
		if got := c.text(); !strings.HasSuffix(got, text) {
			return fmt.Errorf("it has %q", last(got, 200))
		}
		return nil
	})
}

// wantNumbered wants the lines 1..n, each once, in their order and in that of
// their times.
func (c *logCall) wantNumbered(t testing.TB, n int) {
	t.Helper()
	next := 1
	for line := range strings.Lines(c.text()) {
		number, _, _ := strings.Cut(line, " ")
		if number != strconv.Itoa(next) || !strings.HasSuffix(line, ".\n") {
			t.Fatalf("instead of line %d there is %.200q", next, line)
		}
		next++
	}
	if next != n+1 {
		t.Fatalf("there are %d lines instead of %d", next-1, n)
	}
	if len(c.times) != n {
		t.Errorf("%d lines come in %d chunks", n, len(c.times))
	}
	for i := 1; i < len(c.times); i++ {
		if c.times[i].Before(c.times[i-1]) {
			t.Fatalf("line %d has the time %v, the one before %v", i+1, c.times[i], c.times[i-1])
		}
	}
	if spread := c.times[len(c.times)-1].Sub(c.times[0]); spread <= 0 || time.Since(c.times[0]) > time.Hour {
		t.Errorf("the times are from %v on, for %v", c.times[0], spread)
	}
}

// counts prints numbered lines, in bursts with a pause of a hundredth of a second.
func counts(lines, burst int) *runnerv1.ContainerSpec {
	return shell(fmt.Sprintf(`p=%s; i=0
while [ $i -lt %d ]; do j=0
while [ $j -lt %d ]; do i=$((i+1)); j=$((j+1)); echo $i $p .; done
usleep 10000; done`, strings.Repeat("x", 60), lines, burst))
}

// rotations brings an item a moment after each rotation of a log, until ctx ends.
func (r *runner) rotations(ctx context.Context, id string) <-chan int {
	out := make(chan int)
	beginning := int64(200)
	go func() {
		defer close(out)
		number, head := -1, ""
		for ctx.Err() == nil {
			raw, err := suite.admin.CoreV1().Pods(r.namespace).GetLogs("workload-"+id, &corev1.PodLogOptions{Container: "main", LimitBytes: &beginning}).DoRaw(ctx)
			line, _, whole := strings.Cut(string(raw), "\n")
			if err == nil && whole && line != head {
				if number, head = number+1, line; number > 0 {
					select {
					case out <- number:
					case <-ctx.Done():
					}
				}
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	return out
}

// TestLogsThroughRotations: of 200,000 lines each comes once, in order, with its
// own time, though the log is rotated, connections break and the API server is
// away for a moment (C47). They do so after a rotation: what is written before one
// while there is no connection, nobody can have, and it is told.
func TestLogsThroughRotations(t *testing.T) {
	const lines = 200_000
	ns := newNamespace(t)
	breaks, anyTime := newProxy(t), newProxy(t)
	req := sleeper()
	req.Main = counts(lines, 100)
	id := req.GetWorkloadId()
	var calls []*logCall
	for i, through := range []*namespace{
		ns, ns.through(t, breaks.server(), suite.config.CAData), ns.through(t, anyTime.server(), suite.config.CAData),
	} {
		r := startRunner(t, through)
		if i == 0 {
			r.start(t, req)
		}
		r.await(t, id, "it runs", running)
		calls = append(calls, r.follow(t, id))
	}
	ctx, cancel := context.WithCancel(t.Context())
	rotated := 0
	var breaking sync.WaitGroup
	breaking.Go(func() {
		for rotated = range (&runner{namespace: ns.name}).rotations(ctx, id) {
			breaks.cut()
			if rotated == 2 { // as an API server that starts anew
				breaks.close()
				time.Sleep(500 * time.Millisecond)
				breaks.open(t)
			}
		}
	})
	breaking.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(1300 * time.Millisecond)
			anyTime.cut()
		}
	})
	for i, c := range calls[:2] {
		if code := c.wait(t, 3*time.Minute); code != codes.OK {
			t.Errorf("follower %d ends with %v", i, c.err)
		}
		c.wantNumbered(t, lines)
	}
	if code := calls[2].wait(t, time.Minute); code == codes.OK {
		calls[2].wantNumbered(t, lines)
	} else {
		wantError(t, calls[2].err, codes.Unavailable, "LOG_LINES_LOST")
		calls[2].wantNumbered(t, len(calls[2].times))
	}
	cancel()
	breaking.Wait()
	t.Logf("the log was rotated %d times; the connections that broke at any time had %d lines, and %v", rotated, len(calls[2].times), calls[2].err)
	if rotated < 3 {
		t.Error("that is not often; devcluster/config/kubelet.yaml has small files")
	}
}

// TestLogsThroughAnOutage: the API server is away for ten seconds; then the
// container has ended, and all lines come.
func TestLogsThroughAnOutage(t *testing.T) {
	ns := newNamespace(t)
	p := newProxy(t)
	r := startRunner(t, ns.through(t, p.server(), suite.config.CAData))
	req := sleeper()
	req.Main = shell(`i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo $i .; sleep 0.1; done`)
	r.start(t, req)
	c := r.follow(t, req.GetWorkloadId())
	c.awaits(t, ".\n")
	p.close()
	time.Sleep(10 * time.Second)
	p.open(t)
	if code := c.wait(t, time.Minute); code != codes.OK {
		t.Errorf("it ends with %v", c.err)
	}
	c.wantNumbered(t, 60)
}

// TestLogBytes: a log is what the API server sends, byte for byte, and each line
// has its own time (C48).
func TestLogBytes(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main = shell(`printf 'a\324\377b\n\n  \tc\r\r\nd\re\n'
head -c 16384 /dev/zero | tr '\0' y; echo
head -c 300000 /dev/zero | tr '\0' z; echo
i=0; while [ $i -lt 2048 ]; do printf 'é'; i=$((i+1)); done; echo
echo on stderr >&2; sleep 1; printf 'no end'`)
	id := req.GetWorkloadId()
	r.start(t, req)
	follow := r.follow(t, id)
	r.await(t, id, "it has ended", ended)
	want := r.containerLog(t, id, "main")
	if !strings.Contains(want, strings.Repeat("z", 300000)) || !strings.HasSuffix(want, "no end") {
		t.Fatalf("the API server sends %q", last(want, 100))
	}
	follow.wantOK(t, want)
	once := r.logs(t, &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id})
	once.wantOK(t, want)

	raw, err := suite.admin.CoreV1().Pods(r.namespace).GetLogs("workload-"+id, &corev1.PodLogOptions{Container: "main", Timestamps: true}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Time
	for line := range strings.Lines(string(raw)) {
		stamp, _, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + len(line)/(64<<10) { // a long line comes in several chunks
			times = append(times, at)
		}
	}
	for _, c := range []*logCall{follow, once} {
		if len(c.times) != len(times) {
			t.Fatalf("%d chunks instead of %d", len(c.times), len(times))
		}
		for i := range times {
			if !c.times[i].Equal(times[i]) {
				t.Errorf("chunk %d has the time %v instead of %v", i, c.times[i], times[i])
			}
		}
	}
}

// TestLogEnds: each way in which a log ends.
func TestLogEnds(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	t.Run("with the container, whose start is waited for", func(t *testing.T) {
		req := sleeper()
		req.InitContainers = []*runnerv1.ContainerSpec{shell("echo from init; sleep 2")}
		req.Main = shell("echo one; sleep 1; echo two")
		r.start(t, req)
		c := r.follow(t, req.GetWorkloadId())
		init := r.logs(t, &runnerv1.StreamWorkloadLogsRequest{WorkloadId: req.GetWorkloadId(), ContainerName: "init-1", Follow: true})
		init.wantOK(t, "from init\n")
		c.wantOK(t, "one\ntwo\n")
	})
	t.Run("with a run of a container that is started again", func(t *testing.T) {
		req := sleeper()
		side := shell("echo begins; sleep 3; echo ends")
		side.AdditionalProperties = map[string]string{"restart_policy": "Always"}
		req.InitContainers = []*runnerv1.ContainerSpec{side}
		r.start(t, req)
		r.logs(t, &runnerv1.StreamWorkloadLogsRequest{WorkloadId: req.GetWorkloadId(), ContainerName: "init-1", Follow: true}).wantOK(t, "begins\nends\n")
	})
	t.Run("with the deletion of the Pod", func(t *testing.T) {
		for _, force := range []bool{false, true} {
			req := sleeper()
			req.Main = shell(`trap 'echo last words; exit 0' TERM; echo first; while :; do sleep 1000 & wait $!; done`)
			r.start(t, req)
			c := r.follow(t, req.GetWorkloadId())
			c.awaits(t, "first\n")
			if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: req.GetWorkloadId(), Force: force}); err != nil {
				t.Fatal(err)
			}
			c.wait(t, 20*time.Second)
			wantError(t, c.err, codes.Unavailable, "WORKLOAD_DELETED")
			if got := c.text(); !force && got != "first\nlast words\n" {
				t.Errorf("it has %q", got)
			}
		}
	})
	t.Run("with the deletion of a Pod that has not started", func(t *testing.T) {
		req := sleeper()
		req.Main.Image = "127.0.0.1:1/none"
		r.start(t, req)
		c := r.follow(t, req.GetWorkloadId())
		r.await(t, req.GetWorkloadId(), "the image is missing", func(w *runnerv1.InspectWorkloadResponse) bool {
			return strings.Contains(w.GetContainers()[0].GetReason(), "ImagePull")
		})
		if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: req.GetWorkloadId(), Force: true}); err != nil {
			t.Fatal(err)
		}
		c.wait(t, 20*time.Second)
		wantError(t, c.err, codes.Unavailable, "WORKLOAD_DELETED")
	})
	t.Run("empty, where the container never starts", func(t *testing.T) {
		req := sleeper()
		req.InitContainers = []*runnerv1.ContainerSpec{shell("exit 1")}
		r.start(t, req)
		r.follow(t, req.GetWorkloadId()).wantOK(t, "")
	})
	t.Run("refused", func(t *testing.T) {
		req := sleeper()
		r.start(t, req)
		for _, c := range []struct {
			id, container string
			code          codes.Code
			token         string
		}{
			{req.GetWorkloadId(), "nobody", codes.NotFound, "CONTAINER_NOT_FOUND"},
			{uuid.NewString(), "main", codes.NotFound, "WORKLOAD_NOT_FOUND"},
		} {
			call := r.logs(t, &runnerv1.StreamWorkloadLogsRequest{WorkloadId: c.id, ContainerName: c.container, Follow: true})
			call.wait(t, 10*time.Second)
			wantError(t, call.err, c.code, c.token)
		}
	})
}

// TestLogRange: the last lines, and those since a time, in the middle of a second.
func TestLogRange(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main = shell("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i .; sleep 0.05; done")
	id := req.GetWorkloadId()
	r.start(t, req)
	r.await(t, id, "it has ended", ended)
	all := r.logs(t, &runnerv1.StreamWorkloadLogsRequest{WorkloadId: id})
	all.wait(t, time.Minute)
	all.wantNumbered(t, 10)
	middle := timestamppb.New(all.times[6])
	//nolint:staticcheck // existing clients send what is deprecated
	for name, c := range map[string]struct {
		req  *runnerv1.StreamWorkloadLogsRequest
		want string
	}{
		"tail":          {&runnerv1.StreamWorkloadLogsRequest{TailLines: 2}, "9 .\n10 .\n"},
		"tail, as once": {&runnerv1.StreamWorkloadLogsRequest{Tail: 1}, "10 .\n"},
		"since":         {&runnerv1.StreamWorkloadLogsRequest{SinceTime: middle}, "7 .\n8 .\n9 .\n10 .\n"},
		"both":          {&runnerv1.StreamWorkloadLogsRequest{SinceTime: middle, TailLines: 2}, "9 .\n10 .\n"},
		"in the future": {&runnerv1.StreamWorkloadLogsRequest{Since: time.Now().Add(time.Hour).Unix()}, ""},
	} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", name, follow), func(t *testing.T) {
				c.req.WorkloadId, c.req.Follow = id, follow
				r.logs(t, c.req).wantOK(t, c.want)
			})
		}
	}
}
