//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFence looks out of a workload: it reaches the overlay, the cluster's DNS and the
// public internet, and nothing of the cluster. Without the policies it reaches all of it,
// so each of the refusals is theirs.
func TestFence(t *testing.T) {
	rel := install(t, defaults())
	r := rel.connect(t)
	outside := newOutside(t)
	dns := newServer(t, "kube-system", map[string]string{"k8s-app": "kube-dns"}, 53, 8080)
	other := newServer(t, newNamespace(t).name, map[string]string{"app": "other"}, 53, 8080)
	neighbour := r.sleeping(t)
	r.await(t, neighbour, "the neighbour runs", running)
	r.probing(t, neighbour, "serve", ":8080")
	id := r.sleeping(t)
	r.await(t, id, "it runs", running)
	r.probing(t, id)
	pods := rel.pods(t)

	open := map[string]string{
		"the internet":      "tcp=" + outside.internet + ":8080",
		"the internet, UDP": "udp=" + outside.internet + ":8080",
		"the overlay":       "tcp=" + outside.overlay + ":8080",
		"DNS":               "tcp=" + dns.pod + ":53",
		"DNS, UDP":          "udp=" + dns.pod + ":53",
		"DNS, its Service":  "udp=" + dns.service + ":53",
	}
	shut := map[string]string{
		"a DNS Pod, another port":  "tcp=" + dns.pod + ":8080",
		"a Pod":                    "tcp=" + other.pod + ":8080",
		"a Pod, UDP":               "udp=" + other.pod + ":8080",
		"a Pod, port 53":           "udp=" + other.pod + ":53",
		"a Service":                "tcp=" + other.service + ":8080",
		"the runner":               "tcp=" + pods[0].Status.PodIP + ":50051",
		"the runner's metrics":     "tcp=" + pods[0].Status.PodIP + ":9090",
		"the API server":           "tcp=10.96.0.1:443",
		"the API server, its node": "tcp=10.244.0.1:6443",
		"the kubelet":              "tcp=10.244.0.1:10250",
		"metadata":                 "tcp=" + outside.metadata + ":8080",
		"metadata in the overlay":  "tcp=" + outside.overlayMetadata + ":8080",
		"a private network":        "tcp=" + outside.private + ":8080",
	}
	beside := map[string]string{"another workload": "tcp=" + r.pod(t, neighbour).Status.PodIP + ":8080"}

	r.wantReach(t, id, "with the fence", open, merged(shut, beside))
	rel.removePolicy(t, rel.release+"-egress")
	// Who may connect to the runner and to another workload, other policies say.
	runner := map[string]string{"the runner": shut["the runner"]}
	delete(shut, "the runner")
	r.wantReach(t, id, "without egress's", merged(open, shut), merged(beside, runner))
	rel.removePolicy(t, rel.release+"-ingress")
	r.wantReach(t, id, "without ingress's", merged(open, shut, beside), runner)
	if err := suite.admin.NetworkingV1().NetworkPolicies(rel.namespace).Delete(t.Context(), rel.release, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wantReach(t, id, "without any", merged(open, shut, beside, runner), nil)
}

func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

func (r *installation) removePolicy(t testing.TB, name string) {
	t.Helper()
	if err := suite.admin.NetworkingV1().NetworkPolicies(r.workloads).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wantReach asks, from inside a workload, until just the open ones answer: the network
// learns of Pods and policies a moment after the API server.
func (r *runner) wantReach(t *testing.T, id, when string, open, shut map[string]string) {
	t.Helper()
	want, targets := map[string]string{}, map[string]string{}
	for name, target := range open {
		want[name], targets[target] = "open", name
	}
	for name, target := range shut {
		want[name], targets[target] = "shut", name
	}
	eventually(t, time.Minute, when+" it reaches what it should", func() error {
		got := map[string]string{}
		answer := r.inside(t, id, "/tmp/probe ask "+strings.Join(slices.Sorted(maps.Keys(targets)), " "))
		for line := range strings.Lines(answer) {
			target, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			got[targets[target]] = what
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New("(-want +got):\n" + diff)
		}
		return nil
	})
	t.Logf("%s: %d open, %d shut", when, len(open), len(shut))
}

// probing puts the probe into a workload, and runs it there in the background if there is
// something to do.
func (r *runner) probing(t *testing.T, id string, args ...string) {
	t.Helper()
	if err := r.put(t, id, "/tmp", probeArchive(t)); err != nil {
		t.Fatal(err)
	}
	if len(args) == 0 {
		return
	}
	x := r.execute(t, script(id, "exec /tmp/probe "+strings.Join(args, " ")))
	x.id(t)
}

// TestFenceOfCallers: Pods of the release's namespace may call the runner, others may not.
func TestFenceOfCallers(t *testing.T) {
	rel := install(t, defaults())
	address := fmt.Sprintf("tcp=%s:50051", rel.pods(t)[0].Status.PodIP)
	for namespace, want := range map[string]string{rel.namespace: "open", newNamespace(t).name: "shut"} {
		caller := newServer(t, namespace, map[string]string{"app": "caller"}, 8080)
		eventually(t, 30*time.Second, "a Pod of "+namespace+" finds it "+want, func() error {
			if got := caller.ask(t, address); got != address+" "+want+"\n" {
				return fmt.Errorf("it finds %s", got)
			}
			return nil
		})
	}
}
