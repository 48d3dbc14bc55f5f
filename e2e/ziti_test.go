//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/openziti/sdk-golang/ziti"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
)

// realOverlay is an OpenZiti that somebody runs, as the environment names it;
// docs/overlay.md says how to make one.
type realOverlay struct {
	// controller is where its controller is, host:port or a URL.
	controller string
	// identity is the JSON of the identity that may bind service.
	identity []byte
	// caller is the file of the identity that may dial it.
	caller  string
	service string
}

// needOverlay skips the test, and says what is missing, where there is no overlay.
func needOverlay(t *testing.T) realOverlay {
	t.Helper()
	var missing []string
	variable := func(name, what string) string {
		name = "K8S_RUNNER_E2E_ZITI_" + name
		value := os.Getenv(name)
		if value == "" {
			missing = append(missing, fmt.Sprintf("%s (%s)", name, what))
		}
		return value
	}
	o := realOverlay{controller: variable("CONTROLLER", "host:port of the controller")}
	identity := variable("IDENTITY", "identity file that may bind the service")
	o.caller = variable("CALLER", "identity file that may dial the service")
	o.service = variable("SERVICE", "name of the service")
	if len(missing) > 0 {
		t.Skip("THE OVERLAY IS NOT TESTED. It needs a real OpenZiti, and these are not set: " + strings.Join(missing, ", "))
	}
	var err error
	if o.identity, err = os.ReadFile(identity); err != nil {
		t.Fatalf("reading the runner's identity: %v", err)
	}
	if _, err := os.Stat(o.caller); err != nil { // the SDK ends the process over it
		t.Fatalf("reading the caller's identity: %v", err)
	}
	o.wantController(t)
	return o
}

// wantController tells a controller that is not there from all else that may fail.
func (o realOverlay) wantController(t *testing.T) {
	t.Helper()
	address := o.controller
	if at, err := url.Parse(address); err == nil && at.Host != "" {
		address = at.Host
	}
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		t.Fatalf("the overlay's controller (K8S_RUNNER_E2E_ZITI_CONTROLLER) cannot be reached: %v", err)
	}
	conn.Close()
}

// dial returns a connection of the caller to the service.
func (o realOverlay) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	caller, err := sdk.NewContextFromFile(o.caller)
	if err != nil {
		t.Fatalf("reading the caller's identity: %v", err)
	}
	t.Cleanup(caller.Close)
	conn, err := grpc.NewClient("passthrough:///"+o.service,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the overlay has its own
		grpc.WithContextDialer(func(ctx context.Context, service string) (net.Conn, error) {
			return caller.DialContextWithOptions(ctx, service, &sdk.DialOptions{ConnectTimeout: 20 * time.Second})
		}))
	if err != nil {
		t.Fatalf("dialling the service: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// launch starts a runner that serves on the overlay, and waits until callers reach it
// there, as its client does.
func (o realOverlay) launch(t *testing.T, ns *namespace, flags ...string) *runner {
	t.Helper()
	r := launchProcess(t, ns, append(flags, "--ziti-enabled=true")...)
	r.dial(t)
	r.awaitHealthy(t)
	eventually(t, time.Minute, "the runner is ready", func() error {
		if code, body := r.get(t, "/readyz"); code != 200 {
			return fmt.Errorf("/readyz says %s\n%s", body, r.log)
		}
		return nil
	})
	r.wantDoor(t)
	r.conn = o.dial(t)
	r.RunnerServiceClient = runnerv1.NewRunnerServiceClient(r.conn)
	// The way of a runner before this one may be tried first.
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if _, err := r.Ready(ctx, &runnerv1.ReadyRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("calling the runner over the overlay: %v\n%s", err, r.log)
	}
	return r
}

// withoutDetector has the tests use a runner as it is shipped: the SDK has data races of
// its own.
func withoutDetector(t *testing.T) {
	t.Helper()
	plain, err := build(t.Context(), t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	raced := suite.binary
	suite.binary = plain
	t.Cleanup(func() { suite.binary = raced })
}

// TestOverlay: on a real overlay a caller has the whole API, and over TCP nobody has it.
func TestOverlay(t *testing.T) {
	o := needOverlay(t)
	withoutDetector(t)
	p, ns := newPlatform(t), newNamespace(t)
	p.Enrolment = &runnersv1.EnrollRunnerResponse{IdentityJson: o.identity, ServiceName: o.service, IdentityId: "e2e"}
	file := t.TempDir() + "/identity.json"
	r := o.launch(t, ns, p.flags("--ziti-identity-file", file)...)
	t.Run("lifecycle", func(t *testing.T) { testOverlayLifecycle(t, r) })
	t.Run("exec", func(t *testing.T) { testOverlayExec(t, r) })
	r.wantMetrics(t, `k8s_runner_overlay_binds_total{result="ok"} 1`, `k8s_runner_overlay_binds_total{result="unauthorized"} 0`)
	r.wantNoIdentity(t, o.identity)

	// The next start has the identity still, and needs no enrolment.
	r.stop(t)
	r = o.launch(t, ns, p.flags("--ziti-identity-file", file)...)
	if _, err := r.ListWorkloads(t.Context(), &runnerv1.ListWorkloadsRequest{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if got := p.Enrolled(); got != 1 {
		t.Errorf("it enrolled %d times, want once", got)
	}
}

func testOverlayLifecycle(t *testing.T, r *runner) {
	req := sleeper()
	req.Labels = map[string]string{"workload_key": "key-1", "tier": "test"}
	req.Main = shell(`trap 'exit 0' TERM; for i in 1 2 3; do echo line $i; done; while :; do sleep 1000 & wait $!; done`)
	id := r.start(t, req).GetId()
	r.await(t, id, "the workload runs", running)
	checkListed(t, r, id)
	log := r.follow(t, id)
	log.awaits(t, "line 3\n")
	log.stop()
	stopAndSeeGone(t, r, id)
}

func testOverlayExec(t *testing.T, r *runner) {
	id := r.sleeping(t)
	x := r.run(t, script(id, "echo out; echo err >&2; exit 3", separate))
	if x.stdout.String() != "out\n" || x.stderr.String() != "err\n" || x.exit.GetExitCode() != 3 || x.exit.GetReason() != completed {
		t.Errorf("it prints %q and %q and ends with %v", x.stdout.String(), x.stderr.String(), x.exit)
	}
	data := make([]byte, 8<<20)
	_, _ = rand.Read(data)
	x = r.execute(t, &runnerv1.ExecStartRequest{TargetId: id, CommandArgv: []string{"cat"}})
	x.stdin(t, data)
	x.send(t, &runnerv1.ExecRequest{Msg: &runnerv1.ExecRequest_Stdin{Stdin: &runnerv1.ExecStdin{Eof: true}}})
	if x.end(t); x.stdout.String() != string(data) {
		t.Errorf("of %d bytes %d came back, or others", len(data), len(x.stdout.String()))
	}
	stopAndSeeGone(t, r, id)
}

// wantNoIdentity fails if the runner tells any line of the PEM of an identity.
func (r *runner) wantNoIdentity(t testing.TB, identity []byte) {
	t.Helper()
	_, scraped := r.get(t, "/metrics")
	for _, line := range strings.Split(string(identity), `\n`) { // as JSON has it
		if line = strings.TrimSpace(line); len(line) > 40 && strings.Contains(r.log.String()+scraped, line) {
			t.Errorf("the log or the metrics show %q", line)
		}
	}
}
