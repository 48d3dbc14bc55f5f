//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// logCall is a StreamWorkloadLogs and what it has brought.
// logs calls StreamWorkloadLogs, and reads until its end in the background.
// wait waits for the end, and returns its code.
// wantOK wants a log to end well with text.
// awaits waits until the log ends with text.
// wantNumbered wants the lines 1..n, each once, in their order and in that of
// their times.
// counts prints numbered lines, in bursts with a pause of a hundredth of a second.
// rotations brings an item a moment after each rotation of a log, until ctx ends.
// TestLogsThroughRotations: of 200,000 lines each comes once, in order, with its
// own time, though the log is rotated, connections break and the API server is
// away for a moment (C47). They do so after a rotation: what is written before one
// while there is no connection, nobody can have, and it is told.
func TestLogsThroughRotations(t *testing.T) {
	const lines = 200_000
	ns := newNamespace(t)
	breaks, anyTime := newProxy(t), newProxy(t)
	req := sleeper()
	req.Main = counts(lines, 50)
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
	rotated, broken := 0, 0
	var breaking sync.WaitGroup
	breaking.Go(func() {
		node := &runner{namespace: ns.name}
		for rotated = range node.rotations(ctx, id) {
			// What the caller does not have yet may be in the file that was rotated. On a
			// busy machine it comes too late: the next rotation is near.
			has, late := false, time.Now().Add(3*time.Second)
			for !has && time.Now().Before(late) && ctx.Err() == nil {
				first := node.firstLine(ctx, id)
				has = first > 0 && calls[1].lines() >= first
			}
			if !has {
				continue
			}
			breaks.cut()
			if broken++; broken == 2 { // as an API server that starts anew
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
		if code := c.wait(t, 6*time.Minute); code != codes.OK {
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
	t.Logf("the log was rotated %d times, and connections broke after %d of them; those that broke at any time had %d lines, and %v", rotated, broken, len(calls[2].times), calls[2].err)
	if rotated < 3 || broken < 2 {
		t.Error("that is not often; devcluster/config/kubelet.yaml has small files, and the machine must not be too busy")
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
	for name, c := range map[string]struct {
		req  *runnerv1.StreamWorkloadLogsRequest
		want string
	}{
		"tail":          {&runnerv1.StreamWorkloadLogsRequest{TailLines: 2}, "9 .\n10 .\n"},
		"tail, as once": {&runnerv1.StreamWorkloadLogsRequest{Tail: 1}, "10 .\n"}, //nolint:staticcheck // existing clients send it
		"since":         {&runnerv1.StreamWorkloadLogsRequest{SinceTime: middle}, "7 .\n8 .\n9 .\n10 .\n"},
		"both":          {&runnerv1.StreamWorkloadLogsRequest{SinceTime: middle, TailLines: 2}, "9 .\n10 .\n"},
		"in the future": {&runnerv1.StreamWorkloadLogsRequest{Since: time.Now().Add(time.Hour).Unix()}, ""}, //nolint:staticcheck // existing clients send it
	} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", name, follow), func(t *testing.T) {
				c.req.WorkloadId, c.req.Follow = id, follow
				r.logs(t, c.req).wantOK(t, c.want)
			})
		}
	}
}
