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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

type logCall struct {
	mu    sync.Mutex
	data  bytes.Buffer
	times []time.Time
	// err is that of the end, once done is closed.
	err  error
	done chan struct{}
	stop context.CancelFunc
}

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

// lines is how many have come.
func (c *logCall) lines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.times)
}

func (c *logCall) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data.String()
}

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

func (c *logCall) wantOK(t testing.TB, text string) {
	t.Helper()
	if code := c.wait(t, time.Minute); code != codes.OK {
		t.Fatalf("the log ends with %v", c.err)
	}
	if got := c.text(); got != text {
		t.Errorf("the log is %.300q (%d bytes) instead of %.300q (%d)", got, len(got), text, len(text))
	}
}

func (c *logCall) awaits(t testing.TB, text string) {
	t.Helper()
	eventually(t, 30*time.Second, fmt.Sprintf("the log has %q", text), func() error {
		if got := c.text(); !strings.HasSuffix(got, text) {
			return fmt.Errorf("it has %q", last(got, 200))
		}
		return nil
	})
}

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

func counts(lines, burst int) *runnerv1.ContainerSpec {
	return shell(fmt.Sprintf(`p=%s; i=0
while [ $i -lt %d ]; do j=0
while [ $j -lt %d ]; do i=$((i+1)); j=$((j+1)); echo $i $p .; done
usleep 10000; done`, strings.Repeat("x", 60), lines, burst))
}

func (r *runner) rotations(ctx context.Context, id string) <-chan int {
	out := make(chan int)
	go func() {
		defer close(out)
		number, head := -1, 0
		for ctx.Err() == nil {
			if first := r.firstLine(ctx, id); first > head {
				if number, head = number+1, first; number > 0 {
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

// firstLine is the number of the first line in the newest file of a log, 0 if nobody
// can tell.
func (r *runner) firstLine(ctx context.Context, id string) (number int) {
	beginning := int64(200)
	opts := &corev1.PodLogOptions{Container: "main", LimitBytes: &beginning}
	raw, err := suite.admin.CoreV1().Pods(r.namespace).GetLogs("workload-"+id, opts).DoRaw(ctx)
	if err == nil {
		_, _ = fmt.Sscan(string(raw), &number)
	}
	return number
}
