//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var throughChart = flag.Bool("chart", false, "run the tests against the installed chart, through its Service; needs -image")

// notInstalled tells which tests need more of the runner than an installed one gives, and what.
func notInstalled(test string) (why string, is bool) {
	name, _, _ := strings.Cut(test, "/")
	why, is = map[string]string{
		"TestAPIServerRestart":    "its limits are those of a runner that needs no Service to find the API server",
		"TestCredentialOnDisk":    "it gives the runner a token of its own",
		"TestCustomiseNotAllowed": "it changes the Role",
		"TestExecMany":            "it looks at the process' memory",
		"TestExecShutdown":        "it sends the process a signal",
		"TestFaults":              "it kills the process",
		"TestForgottenStart":      "it kills the process",
		"TestKindsThatAreRefused": "it changes the Role",
		"TestManyFollowers":       "it looks at the process' memory and files",
		"TestNoMetrics":           "the chart probes the listener of metrics",
		"TestOverridesBadAtStart": "its runner is never Ready, which an installation waits for",
		"TestReadyz":              "its runner is never Ready, which an installation waits for",
		"TestReaper":              "what it leaves is taken away before two installations are done",
		"TestReaperAfterAKill":    "it kills the process",
		"TestRemoveWithVolumes":   "it changes the Role",
		"TestShutdownInAStart":    "it sends the process a signal",
	}[name]
	return why, is
}

// installRunner is launchRunner through the chart.
func installRunner(t testing.TB, ns *namespace, flags []string) *runner {
	t.Helper()
	if why, is := notInstalled(t.Name()); is {
		t.Skip("not with -chart: " + why)
	}
	if ns.server != suite.config.Host {
		t.Skip("not with -chart: the test has a way of its own to the API server")
	}
	if diff := cmp.Diff(verbsOf(suite.rules), verbsOf(ns.rules)); diff != "" {
		t.Skip("not with -chart: the test has another Role")
	}
	i := newInstallation(t)
	i.workloads = ns.name
	i.helm(t, i.settings(t, flags), "install", i.release, chartFolder)
	r := &runner{namespace: ns.name, account: i.account, log: &syncBuffer{}, installed: i}
	r.address = i.throughService(t)
	pods := i.pods(t)
	if len(pods) != 1 {
		t.Fatalf("there are %d Pods of the runner", len(pods))
	}
	i.metrics = forward(t, pods[0].Status.PodIP+":9090")
	i.followLog(t, pods[0].Name, r.log)
	r.dial(t)
	t.Cleanup(func() { i.wantNoRestart(t) })
	return r
}

// settings are the chart's values for flags of serve. A node that is cordoned, as tests do
// to keep workloads from it, takes the runner all the same.
func (r *installation) settings(t testing.TB, flags []string) values {
	t.Helper()
	v := defaults().with(r.workloads, "workloads", "namespace").with(false, "workloads", "createNamespace").
		with("text", "config", "log", "format").with(0, "drainSeconds").
		with([]values{{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}}, "tolerations")
	var env []values
	for len(flags) > 0 {
		name, value, joined := strings.Cut(flags[0], "=")
		if flags = flags[1:]; !joined {
			value, flags = flags[0], flags[1:]
		}
		switch group, _, _ := strings.Cut(strings.TrimPrefix(name, "--"), "-"); {
		case group == "gateway", group == "ziti", group == "traces":
			t.Skip("not with -chart: what the runner calls is on this machine, where no Pod comes")
		case group == "tls":
			t.Skip("not with -chart: the certificates are files of this machine")
		case name == "--catalog-path":
			v = v.with(readCatalog(t, value), "catalog")
		case name == "--templates-namespace":
			t.Skip("not with -chart: its Role is in one namespace")
		default:
			env = append(env, values{"name": variableOf(t, name), "value": value})
		}
	}
	return v.with(env, "extraEnv")
}

func readCatalog(t testing.TB, path string) (catalog map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, &catalog)
	}
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// variableOf is the environment variable of a flag, as its help says.
func variableOf(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), suite.binary, "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ +` + name + ` .*\[([A-Z0-9_]+)\]$`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("there is no flag %s", name)
	}
	return string(found[1])
}

// followLog copies the runner's log until the test or the runner ends.
func (r *installation) followLog(t testing.TB, pod string, to io.Writer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log, err := suite.admin.CoreV1().Pods(r.namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(to, log)
		_ = log.Close()
	})
	t.Cleanup(func() {
		cancel()
		copying.Wait()
	})
}

// stop ends the runner, gracefully, and waits until it is gone.
func (r *installation) stop(t testing.TB) {
	t.Helper()
	r.wantNoRestart(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := suite.admin.AppsV1().Deployments(r.namespace).Delete(ctx, r.release, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	eventually(t, time.Minute, "the runner has ended", func() error {
		pods, err := suite.admin.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d Pods", len(pods.Items))
		}
		return err
	})
}

// wantNoRestart wants a runner that has not ended by itself.
func (r *installation) wantNoRestart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods, err := suite.admin.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("the runner ended: %v", c.LastTerminationState)
			}
		}
	}
}
