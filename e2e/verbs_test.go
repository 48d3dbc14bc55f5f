//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// notAllowed is what a caller is told of a verb that the Role lacks.
const notAllowed = "code = PermissionDenied desc = runner_not_allowed: "

// verbCase is what needs a verb. use returns what is wrong, nil with the whole
// Role, and an error that has want without the verb.
type verbCase struct {
	use  func(t *testing.T, r *runner, ns *namespace) error
	want string
}

func verbCases() map[string]verbCase {
	return map[string]verbCase{
		"pods list":                     {beginsWithList("pods"), "cannot list resource"},
		"pods watch":                    {showsPods, errLate.Error()},
		"pods create":                   {starts(sleeper), notAllowed},
		"pods get":                      {removesWithVolumes, notAllowed},
		"pods patch":                    {starts(withVolume), notAllowed},
		"pods delete":                   {stops, notAllowed},
		"pods/log get":                  {readsLog, notAllowed},
		"pods/exec create":              {executes, "the runner's Role does not allow"},
		"pods/exec get":                 {executesWithoutSPDY, "the runner's Role does not allow"},
		"persistentvolumeclaims list":   {beginsWithList("persistentvolumeclaims"), "cannot list resource"},
		"persistentvolumeclaims watch":  {showsClaims, errLate.Error()},
		"persistentvolumeclaims create": {starts(withVolume), notAllowed},
		"persistentvolumeclaims get":    {removesVolume, notAllowed},
		"persistentvolumeclaims delete": {removesVolume, notAllowed},
		"secrets create":                {starts(withFile), notAllowed},
		"secrets patch":                 {completes, notAllowed},
		"networkpolicies (networking.k8s.io) create": {starts(sleeper), notAllowed},
		"networkpolicies (networking.k8s.io) patch":  {completes, notAllowed},
		"configmaps list":  {showsTemplates, errLate.Error()},
		"configmaps watch": {showsTemplates, errLate.Error()},
		"events create":    {tellsOperator, "an operator is not told"},
		"events list":      {streamsEvents, notAllowed},
		"events watch":     {streamsEvents, notAllowed},
	}
}

// TestVerbs: without any one verb of the Role something stops that the runner
// does with all of them, and where it is a call, its caller is told.
func TestVerbs(t *testing.T) {
	cases := verbCases()
	t.Run("all", func(t *testing.T) {
		ns := newNamespace(t)
		r := startRunner(t, ns, "--network-policy-enabled=true")
		for name, c := range cases {
			if err := c.use(t, r, ns); err != nil {
				t.Errorf("%s: with the whole Role: %v", name, err)
			}
		}
	})
	for _, name := range verbsOf(suite.rules) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, known := cases[name]
			if !known {
				t.Fatal("nothing needs it")
			}
			resource, _, _ := strings.Cut(name, " ")
			verb := name[strings.LastIndex(name, " ")+1:]
			ns := newNamespaceWith(t, without(suite.rules, resource, verb))
			r := startRunner(t, ns, "--network-policy-enabled=true")
			if err := c.use(t, r, ns); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("without it: %v; want %q", err, c.want)
			}
		})
	}
}

func withVolume() *runnerv1.StartWorkloadRequest {
	req := sleeper()
	req.Volumes = []*runnerv1.VolumeSpec{{
		Name: "v", Kind: runnerv1.VolumeKind_VOLUME_KIND_NAMED, PersistentName: claimOf(req.GetWorkloadId()), Size: "1Mi",
		Labels: map[string]string{"volume_key": "k"},
	}}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "v", MountPath: "/v"}}
	return req
}

func withFile() *runnerv1.StartWorkloadRequest {
	req := sleeper()
	req.InlineFiles = map[string][]byte{"/file": []byte("content")}
	req.Main.InlineFileMounts = []*runnerv1.InlineFileMount{{Path: "/file"}}
	return req
}

func starts(request func() *runnerv1.StartWorkloadRequest) func(*testing.T, *runner, *namespace) error {
	return func(t *testing.T, r *runner, _ *namespace) error {
		_, err := r.StartWorkload(t.Context(), request())
		return err
	}
}

func stops(t *testing.T, r *runner, _ *namespace) error {
	_, err := r.StopWorkload(t.Context(), &runnerv1.StopWorkloadRequest{WorkloadId: r.sleeping(t)})
	return err
}

func removesWithVolumes(t *testing.T, r *runner, _ *namespace) error {
	_, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: r.sleeping(t), RemoveVolumes: true})
	return err
}

func removesVolume(t *testing.T, r *runner, ns *namespace) error {
	claim := "claim-" + newID()
	newClaim(t, ns.name, claim, "k")
	_, err := r.RemoveVolume(t.Context(), &runnerv1.RemoveVolumeRequest{VolumeName: claim})
	return err
}

func readsLog(t *testing.T, r *runner, _ *namespace) error {
	req := sleeper()
	req.Main = shell("echo done")
	r.start(t, req)
	c := r.follow(t, req.GetWorkloadId())
	if c.wait(t, time.Minute); c.text() == "done\n" {
		return nil
	}
	return c.err
}

func executes(t *testing.T, r *runner, _ *namespace) error {
	x := r.execute(t, script(r.sleeping(t), "true"))
	<-x.ended
	if x.failure != nil {
		return fmt.Errorf("%s: %s", x.failure.GetCode(), x.failure.GetMessage())
	}
	return x.err
}

// executesWithoutSPDY runs a command where a proxy lets only WebSockets through.
func executesWithoutSPDY(t *testing.T, _ *runner, ns *namespace) error {
	proxy := newReader(t, func(w http.ResponseWriter, r *http.Request) bool {
		spdy := strings.HasPrefix(strings.ToLower(r.Header.Get("Upgrade")), "spdy")
		if spdy {
			http.Error(w, "no SPDY here", http.StatusBadRequest)
		}
		return spdy
	})
	return executes(t, startRunner(t, ns.through(t, proxy.URL, proxy.ca())), ns)
}

// completes begins a start as a runner does that ends in the middle of it, and
// has the runner complete it.
func completes(t *testing.T, r *runner, ns *namespace) error {
	req := withFile()
	_, manifests, err := newEngine(t, ns.name, true).Render(req)
	if err != nil {
		t.Fatal(err)
	}
	created := 1 + len(manifests.Owned)
	s := set{pod: manifests.Pod, owned: manifests.Owned}
	if err := s.start(t.Context(), newApplier(t, ns, crashes(created+1, false))); err == nil {
		t.Fatal("the start was not interrupted")
	}
	_, err = r.StartWorkload(t.Context(), req)
	return err
}

func streamsEvents(t *testing.T, r *runner, _ *namespace) error {
	c := r.events(t, &runnerv1.StreamEventsRequest{})
	id := r.sleeping(t)
	name := "workload-" + id
	for {
		for _, e := range c.all() {
			if e.InvolvedObject.Name == name {
				return nil
			}
		}
		select {
		case <-c.done:
			return c.err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tellsOperator edits the templates; the runner tells of it at the ConfigMap, or
// in its log that it cannot.
func tellsOperator(t *testing.T, r *runner, ns *namespace) error {
	name := "values-" + newID()
	ns.lay(t, name, "values", map[string]string{"values.yaml": "x: y\n"})
	var told error
	eventually(t, 30*time.Second, "the operator is told", func() error {
		told = nil
		list, err := suite.admin.CoreV1().Events(ns.name).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil || len(list.Items) > 0 {
			return err
		}
		for line := range strings.Lines(r.log.String()) {
			if strings.Contains(line, "an operator is not told") && strings.Contains(line, name) {
				told = fmt.Errorf("the log says %s", line)
				return nil
			}
		}
		return fmt.Errorf("there is no Event")
	})
	return told
}

// beginsWithList starts a runner on a cluster whose watches cannot begin with what
// is there, as before Kubernetes 1.34.
func beginsWithList(resource string) func(*testing.T, *runner, *namespace) error {
	return func(t *testing.T, _ *runner, ns *namespace) error {
		old := newReader(t, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("sendInitialEvents") == "" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,`+
				`"message":"sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"}`)
			return true
		})
		r := launchRunner(t, ns.through(t, old.URL, old.ca()))
		denied := fmt.Sprintf(`cannot list resource \"%s\"`, resource) // as it is quoted there
		var said error
		eventually(t, 30*time.Second, "the runner is ready, or says why it cannot be", func() error {
			said = nil
			if strings.Contains(r.log.String(), denied) {
				said = fmt.Errorf("the log says: %s", denied)
				return nil
			}
			if !strings.Contains(r.log.String(), "serving metrics") {
				return fmt.Errorf("it has not begun")
			}
			if code, why := r.get(t, "/readyz"); code != http.StatusOK {
				return fmt.Errorf("/readyz says %s", why)
			}
			return nil
		})
		if code, _ := r.get(t, "/readyz"); said != nil && code == http.StatusOK {
			t.Error("/readyz is good all the same")
		}
		return said
	}
}
