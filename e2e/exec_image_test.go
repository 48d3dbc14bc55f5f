//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestExecBare: in an image without a shell a command runs as it is, and what needs
// a shell is refused with a reason.
func TestExecBare(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	req := sleeper()
	req.Main = &runnerv1.ContainerSpec{Image: "devcluster.local/pause:1"} // one program, and nothing else
	r.start(t, req)
	id := req.GetWorkloadId()
	argv := func(change ...func(*runnerv1.ExecOptions)) *runnerv1.ExecStartRequest {
		start := script(id, "", change...)
		start.CommandArgv = []string{"/pause"}
		return start
	}
	x := r.execute(t, argv(timeout(time.Second), killing))
	x.id(t)
	wantEnd(t, x, time.Now().Add(time.Second), timedOut, false) // it runs on, and that is said
	none := argv()
	none.CommandArgv = []string{"/nope"}
	for name, start := range map[string]*runnerv1.ExecStartRequest{
		"shell":       script(id, "true"),
		"environment": argv(func(o *runnerv1.ExecOptions) { o.Env = []*runnerv1.EnvVar{{Name: "A", Value: "b"}} }),
		"directory":   argv(func(o *runnerv1.ExecOptions) { o.Workdir = "/" }),
		"log":         argv(func(o *runnerv1.ExecOptions) { o.LogToPid1 = true }),
		"not there":   none,
	} {
		t.Run(name, func(t *testing.T) {
			x := r.execute(t, start)
			if <-x.ended; x.failure.GetCode() != "exec_start_failed" || x.exit != nil || x.err != nil {
				t.Fatalf("failure %v, exit %v, error %v", x.failure, x.exit, x.err)
			}
			if why := x.failure.GetMessage(); !strings.Contains(why, "shell") && !strings.Contains(why, "/nope") {
				t.Errorf("it says %q", why)
			}
		})
	}
}
