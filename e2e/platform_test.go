//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/e2e/gateway"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
)

// serviceToken is that of every runner in a platform here. It may be nowhere to be
// seen.
const serviceToken = "s3rvice-t0ken-of-the-runner"

// statusOrder is that in which the statuses of a workload come.
var statusOrder = []runnersv1.WorkloadStatus{
	runnersv1.WorkloadStatus_WORKLOAD_STATUS_STARTING, runnersv1.WorkloadStatus_WORKLOAD_STATUS_RUNNING,
	runnersv1.WorkloadStatus_WORKLOAD_STATUS_STOPPED, runnersv1.WorkloadStatus_WORKLOAD_STATUS_FAILED,
}

// platform is a gateway that a runner can be started with.
type platform struct {
	*gateway.Gateway
	address string
}

func newPlatform(t testing.TB) *platform {
	t.Helper()
	p := &platform{gateway.New(serviceToken), "127.0.0.3:0"}
	p.start(t)
	t.Cleanup(p.Stop)
	t.Setenv("SERVICE_TOKEN", serviceToken)
	return p
}

func (p *platform) start(t testing.TB) {
	t.Helper()
	var err error
	if p.address, err = p.Start(t.Context(), p.address); err != nil {
		t.Fatal(err)
	}
}

// flags are those of a runner that is part of p.
func (p *platform) flags(more ...string) []string {
	return append([]string{"--gateway-address", p.address}, more...)
}

// awaitState waits until the newest state of a workload that was told is as check wants
// it, and checks that none went back.
func (p *platform) awaitState(t testing.TB, within time.Duration, id, what string, check func(*gateway.Told) bool) {
	t.Helper()
	eventually(t, within, what+" is told", func() error {
		if newest := p.Newest(id); newest == nil || !check(newest) {
			return fmt.Errorf("it is %v", newest)
		}
		return nil
	})
	p.wantForward(t, id)
}

// wantForward fails if a state of a workload was told that comes before one that was
// told earlier.
func (p *platform) wantForward(t testing.TB, id string) {
	t.Helper()
	last, at := 0, time.Time{}
	for _, told := range p.States(id) {
		now := slices.Index(statusOrder, told.GetStatus())
		if now < last || told.GetObservedAt().AsTime().Before(at) {
			t.Errorf("of %s it is told %s of %s, after %s of %s", id, told.GetStatus(), told.GetObservedAt().AsTime(), statusOrder[last], at)
		}
		last, at = max(now, last), told.GetObservedAt().AsTime()
	}
}

func is(status runnersv1.WorkloadStatus) func(*gateway.Told) bool {
	return func(told *gateway.Told) bool { return told.GetStatus() == status }
}

const (
	reportedStarting = runnersv1.WorkloadStatus_WORKLOAD_STATUS_STARTING
	reportedRunning  = runnersv1.WorkloadStatus_WORKLOAD_STATUS_RUNNING
	reportedStopped  = runnersv1.WorkloadStatus_WORKLOAD_STATUS_STOPPED
	reportedFailed   = runnersv1.WorkloadStatus_WORKLOAD_STATUS_FAILED
)

// wantNoToken fails if the runner tells the service token or the identity anywhere.
func (r *runner) wantNoToken(t testing.TB, flags ...string) {
	t.Helper()
	_, scraped := r.get(t, "/metrics")
	printed, err := exec.Command(suite.binary, append([]string{"serve", "--kube-namespace", r.namespace, "--grpc-address", r.address, "--print-config"}, flags...)...).CombinedOutput()
	if err != nil {
		t.Errorf("printing the settings: %v\n%s", err, printed)
	}
	asked, err := exec.Command(suite.binary, "status", "--address", r.address, "-o", "yaml").CombinedOutput()
	if err != nil {
		t.Errorf("asking for the status: %v\n%s", err, asked)
	}
	for where, text := range map[string]string{"the log": r.log.String(), "the metrics": scraped, "the settings": string(printed), "the status": string(asked)} {
		if strings.Contains(text, serviceToken) || strings.Contains(text, "of the identity") {
			t.Errorf("%s: it tells a secret:\n%s", where, text)
		}
	}
}

// TestEnrolment: a runner enrols, tells what it offers, and serves then; of a workload
// it tells how it begins, runs and ends.
func TestEnrolment(t *testing.T) {
	p := newPlatform(t)
	ns := newNamespace(t)
	catalog := tempFile(t, "flavors:\n- {name: small, default: true, resources: {requestsCpu: 10m, limitsMemory: 64Mi}}\nstorageClasses:\n- {name: fast}\n")
	flags := p.flags("--catalog-path", catalog, "--capabilities-implementations", `{"docker":"rootless"}`)
	r := startRunner(t, ns, flags...)
	told := p.Catalogs()
	if p.Enrolled() != 1 || len(told) != 1 {
		t.Fatalf("it serves, enrolled %d times, having told %d catalogs", p.Enrolled(), len(told))
	}
	c := told[0]
	if c.GetRunnerId() != "one" || c.GetFlavors()[0].GetResources().GetLimitsMemory() != "64Mi" || c.GetStorageClasses()[0].GetName() != "fast" {
		t.Errorf("it told %v", c)
	}
	if diff := cmp.Diff([]string{"docker", "compute-resources"}, c.GetCapabilities()); diff != "" {
		t.Errorf("of what works (-want +got):\n%s", diff)
	}
	req := sleeper()
	id := r.start(t, req).GetId()
	p.awaitState(t, 30*time.Second, id, "that it runs", is(reportedRunning))
	first, newest := p.States(id)[0], p.Newest(id)
	if first.GetStatus() != reportedStarting {
		t.Errorf("the first state is %v", first)
	}
	main := newest.GetContainers()[0]
	if newest.GetRunnerId() != "one" || main.GetName() != "main" || main.GetContainerId() == "" || main.GetStartedAt() == nil ||
		main.GetStatus() != runnersv1.ContainerStatus_CONTAINER_STATUS_RUNNING || main.GetRole() != runnersv1.ContainerRole_CONTAINER_ROLE_MAIN {
		t.Errorf("it is told as %v", newest)
	}
	if _, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: id}); err != nil {
		t.Fatal(err)
	}
	p.awaitState(t, 30*time.Second, id, "its end", is(reportedStopped))
	r.wantNoToken(t, flags...)
	eventually(t, 5*time.Second, "the metrics tell of it", func() error {
		_, text := r.get(t, "/metrics")
		for _, line := range []string{"k8s_runner_gateway_up 1\n", "k8s_runner_state_reports_unsent 0\n", "k8s_runner_enrolments_total{result=\"ok\"} 1\n"} {
			if !strings.Contains(text, line) {
				return fmt.Errorf("there is no line %s", line)
			}
		}
		return nil
	})
}

// TestEnrolmentRefused: a runner whose token does not count ends, and says what to do.
func TestEnrolmentRefused(t *testing.T) {
	p := newPlatform(t)
	p.Take("another")
	r := launchRunner(t, newNamespace(t), p.flags()...)
	r.wantEnd(t, 20*time.Second, "the platform refuses the service token (gateway.service_token, environment SERVICE_TOKEN)")
}

// TestEnrolmentLate: a runner waits for the gateway, for so long and no longer, and is
// not ready meanwhile.
func TestEnrolmentLate(t *testing.T) {
	p := newPlatform(t)
	p.Stop()
	defer p.start(t) // to be stopped again
	ns := newNamespace(t)
	r := launchRunner(t, ns, p.flags("--ziti-enrollment-timeout", "2s")...)
	r.wantEnd(t, 20*time.Second, "enrolling with the platform: no answer for 2s")
	r = launchRunner(t, ns, p.flags()...)
	eventually(t, 20*time.Second, "it serves its probes", func() error {
		if !strings.Contains(r.log.String(), "serving metrics") {
			return errors.New(r.log.String())
		}
		return nil
	})
	eventually(t, 20*time.Second, "it says what it waits for", func() error {
		if code, text := r.get(t, "/readyz"); code != 503 || !strings.Contains(text, "gateway: not enrolled yet") {
			return fmt.Errorf("it is %d %s", code, text)
		}
		return nil
	})
	p.start(t)
	defer p.Stop()
	eventually(t, 30*time.Second, "it is ready", func() error {
		if code, text := r.get(t, "/readyz"); code != 200 {
			return fmt.Errorf("it is %d %s", code, text)
		}
		return nil
	})
}

// wantEnd waits until the runner has ended by itself with an error that says so.
func (r *runner) wantEnd(t testing.TB, within time.Duration, says string) {
	t.Helper()
	select {
	case err := <-r.exited:
		r.process = nil
		if err == nil || !strings.Contains(r.log.String(), says) || strings.Contains(r.log.String(), serviceToken) {
			t.Errorf("it ended with %v\n%s", err, r.log)
		}
	case <-time.After(within):
		t.Errorf("it did not end\n%s", r.log)
	}
}

// TestOldPlatform: with one that has none of the calls, a runner works as without.
func TestOldPlatform(t *testing.T) {
	p := newPlatform(t)
	p.Behave(gateway.Conduct{Old: true})
	r := startRunner(t, newNamespace(t), p.flags()...)
	r.await(t, r.start(t, sleeper()).GetId(), "it runs", running)
	if n := strings.Count(r.log.String(), "level=warning"); n < 3 || n > 4 { // one each, and that there is no id
		t.Errorf("it costs %d lines:\n%s", n, r.log)
	}
}

// TestReasons: what keeps a container from running, and what ended it, is told with
// reason and message, and that a workload failed where it did.
func TestReasons(t *testing.T) {
	p := newPlatform(t)
	ns := newNamespace(t)
	r, o := startRunner(t, ns, p.flags()...), newOperator(t, ns)
	o.layAll(t, aPatch("refuses-root", "  containers:\n  - name: {{ (first .Containers).Name }}\n"+
		"    {{- if hasKey .Labels \"refuse-root\" }}\n    securityContext: {runAsNonRoot: true}\n    {{- end }}\n"))
	for name, c := range map[string]struct {
		change    func(*runnerv1.StartWorkloadRequest)
		container string
		status    runnersv1.WorkloadStatus
		reasons   []string
	}{
		"pull":        {func(q *runnerv1.StartWorkloadRequest) { q.Main.Image = "nope.invalid/x:1" }, "main", reportedStarting, []string{"ErrImagePull", "ImagePullBackOff"}},
		"config":      {func(q *runnerv1.StartWorkloadRequest) { q.Labels = map[string]string{"refuse-root": "1"} }, "main", reportedStarting, []string{"CreateContainerConfigError"}},
		"init":        {func(q *runnerv1.StartWorkloadRequest) { q.InitContainers = []*runnerv1.ContainerSpec{shell("exit 3")} }, "init-1", reportedFailed, []string{"Error"}},
		"no command":  {func(q *runnerv1.StartWorkloadRequest) { q.Main.Entrypoint = "/no/such/command" }, "main", reportedFailed, []string{"StartError"}},
		"memory":      {outOfMemory, "main", reportedFailed, []string{"OOMKilled"}},
		"exit code":   {func(q *runnerv1.StartWorkloadRequest) { q.Main = shell("exit 42") }, "main", reportedFailed, []string{"Error"}},
		"success":     {func(q *runnerv1.StartWorkloadRequest) { q.Main = shell("exit 0") }, "main", reportedStopped, []string{"Completed"}},
		"eviction":    {overfull, "main", reportedFailed, []string{"Evicted", "Error"}},
		"no place":    {tooLarge, "main", reportedStarting, []string{"Unschedulable"}},
		"deleted one": {func(*runnerv1.StartWorkloadRequest) {}, "main", reportedRunning, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			req := sleeper()
			c.change(req)
			id := r.start(t, req).GetId()
			p.awaitState(t, 3*time.Minute, id, name, func(told *gateway.Told) bool {
				i := slices.IndexFunc(told.GetContainers(), func(of *runnersv1.Container) bool { return of.GetName() == c.container })
				return i >= 0 && told.GetStatus() == c.status && slices.Contains(c.reasons, told.GetContainers()[i].GetReason())
			})
			w := r.inspect(t, id)
			if failed := w.GetStateStatus() == "failed"; failed != (p.Newest(id).GetStatus() == reportedFailed) {
				t.Errorf("it is %s, and told as %s", w.GetStateStatus(), p.Newest(id).GetStatus())
			}
			if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true}); err != nil {
				t.Fatal(err)
			}
			p.awaitState(t, 10*time.Second, id, "its end", func(told *gateway.Told) bool {
				return c.status == reportedFailed && told.GetStatus() == reportedFailed || c.status != reportedFailed && told.GetStatus() == reportedStopped
			})
		})
	}
}

// sized gives the main container of q resources of its own.
func sized(q *runnerv1.StartWorkloadRequest, r *runnerv1.ComputeResources) {
	q.Capabilities, q.Main.Resources = []string{"compute-resources"}, r
}

func outOfMemory(q *runnerv1.StartWorkloadRequest) {
	q.Main = shell("exec tail /dev/zero")
	sized(q, &runnerv1.ComputeResources{LimitsMemory: "20Mi"})
}

func tooLarge(q *runnerv1.StartWorkloadRequest) {
	sized(q, &runnerv1.ComputeResources{RequestsCpu: "10000"})
}

// overfull fills a volume beyond its limit, for which the kubelet evicts its Pod.
func overfull(q *runnerv1.StartWorkloadRequest) {
	q.Main = shell("head -c 20000000 /dev/zero > /full/x; while :; do sleep 1000 & wait $!; done")
	q.Volumes = []*runnerv1.VolumeSpec{{Name: "full", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL, Size: "1Mi"}}
	q.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "full", MountPath: "/full"}}
}

// TestKilledWhileItReports: after a runner was killed and another begun, the platform
// knows what is.
func TestKilledWhileItReports(t *testing.T) {
	p := newPlatform(t)
	ns := newNamespace(t)
	r := startRunner(t, ns, p.flags()...)
	p.Behave(gateway.Conduct{Delay: time.Hour}) // nothing more is taken of this one
	short, long := sleeper(), sleeper()
	short.Main = shell("exit 7")
	r.start(t, short)
	r.start(t, long)
	r.await(t, short.GetWorkloadId(), "it has ended", ended)
	r.await(t, long.GetWorkloadId(), "it runs", running)
	if err := r.process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-r.exited
	r.process = nil
	p.Behave(gateway.Conduct{})
	startRunner(t, ns, p.flags()...)
	p.awaitState(t, 5*time.Second, short.GetWorkloadId(), "that it failed", is(reportedFailed))
	p.awaitState(t, 5*time.Second, long.GetWorkloadId(), "that it runs", is(reportedRunning))
}

// TestStatusOfAll: an operator sees how a runner is, and that it is not ready.
func TestStatusOfAll(t *testing.T) {
	p := newPlatform(t)
	r := startRunner(t, newNamespace(t), p.flags()...)
	show := func() (string, error) {
		out, err := exec.Command(suite.binary, "status", "--address", r.address).CombinedOutput()
		return string(out), err
	}
	text, err := show()
	for _, part := range []string{"Ready: ", "yes", "namespace " + r.namespace, "pods heard", p.address + " answers", "one ", "catalog told", "Last errors:", "none"} {
		if !strings.Contains(text, part) || err != nil {
			t.Errorf("there is no %q, %v:\n%s", part, err, text)
		}
	}
	p.Stop()
	defer p.start(t) // to be stopped again
	eventually(t, 10*time.Second, "it tells that the gateway is away", func() error {
		text, err := show()
		if !strings.Contains(text, "away since") || !strings.Contains(text, "warning: the platform's gateway does not answer") || err != nil {
			return fmt.Errorf("it is %w\n%s", err, text)
		}
		return nil
	})
}

// TestEndAtShutdown: of a workload that goes while the runner ends the platform is told,
// although the gateway is slow: the next runner knows nothing of it.
func TestEndAtShutdown(t *testing.T) {
	p := newPlatform(t)
	r := startRunner(t, newNamespace(t), p.flags()...)
	id := r.start(t, sleeper()).GetId()
	p.awaitState(t, 30*time.Second, id, "that it runs", is(reportedRunning))
	p.Behave(gateway.Conduct{Delay: time.Second})
	if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true}); err != nil {
		t.Fatal(err)
	}
	r.stop(t)
	if newest := p.Newest(id); !is(reportedStopped)(newest) {
		t.Errorf("it is told %v", newest)
	}
}
