//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestCallsAreFound: the log has each call by the id that its caller gave it or was
// told, a command by its own ids too, and with traces by that of the trace. Streams
// are counted while they are open.
func TestCallsAreFound(t *testing.T) {
	r := startRunner(t, newNamespace(t), "--traces-endpoint", "http://"+newTraces(t).address)
	req := sleeper()
	id := req.GetWorkloadId()
	r.start(t, req)
	r.await(t, id, "it runs", running)

	var header metadata.MD
	if _, err := r.Ready(metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "of-the-caller"), &runnerv1.ReadyRequest{}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if got := header.Get("x-request-id"); len(got) != 1 || got[0] != "of-the-caller" {
		t.Errorf("the answer has the ids %q", got)
	}
	if _, err := r.Ready(t.Context(), &runnerv1.ReadyRequest{}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	made := strings.Join(header.Get("x-request-id"), ",")

	follow := r.follow(t, id)
	x := r.execute(t, &runnerv1.ExecStartRequest{RequestId: "turn-7", TargetId: id, CommandArgv: []string{"cat"}})
	execution := <-x.started
	eventually(t, 10*time.Second, "both streams are counted", func() error {
		_, text := r.get(t, "/metrics")
		for method, n := range map[string]string{"StreamWorkloadLogs": "1", "Exec": "1", "StreamEvents": "0"} {
			if line := `k8s_runner_streams_open{method="` + method + `"} ` + n; !strings.Contains(text, line+"\n") {
				return fmt.Errorf("the metrics have no %s", line)
			}
		}
		return nil
	})
	x.cancel()
	follow.stop()
	<-x.ended
	<-follow.done
	r.stop(t)
	for what, line := range map[string]string{
		"the caller's id":  `grpc\.method=Ready .*request_id=of-the-caller trace_id=[0-9a-f]{32}`,
		"an id it made":    `grpc\.method=Ready .*request_id=` + regexp.QuoteMeta(made) + ` `,
		"the command's id": `exec_request_id=turn-7 execution=` + regexp.QuoteMeta(execution) + ` .*grpc\.method=Exec .*request_id=`,
	} {
		if !regexp.MustCompile(line).MatchString(r.log.String()) {
			t.Errorf("%s is not in the log\n%s", what, r.log)
		}
	}
}
