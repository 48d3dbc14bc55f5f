//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// readyLimit is how long a runner whose image is there takes from its Pod to Ready.
const readyLimit = 3 * time.Second

// TestChart installs the chart with its defaults: a runner that is Ready, workloads that
// run, commands, logs and files, all through its Service; and takes it away again.
func TestChart(t *testing.T) {
	rel := install(t, defaults())
	r := rel.connect(t)
	req := sleeper()
	req.Main = shell(`echo hello; trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done`)
	req.Volumes = []*runnerv1.VolumeSpec{{Name: "data", PersistentName: "data", Kind: runnerv1.VolumeKind_VOLUME_KIND_NAMED, Size: "1Mi", Labels: map[string]string{"volume_key": "key"}}}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "data", MountPath: "/data"}}
	req.Flavor = "small"
	r.start(t, req)
	id := req.GetWorkloadId()
	r.await(t, id, "it runs", running)
	if out := r.run(t, script(id, "echo kept >/data/f; echo from a command")).stdout.String(); out != "from a command\n" {
		t.Errorf("a command prints %q", out)
	}
	if got := r.containerLog(t, id, "main"); got != "hello\n" {
		t.Errorf("the log is %q", got)
	}
	t.Run("cold start", func(t *testing.T) { testColdStart(t, rel) })
	t.Run("uninstall", func(t *testing.T) { testUninstall(t, rel, r) })
	t.Run("install again", func(t *testing.T) {
		rel.helm(t, defaults(), "install", rel.release, chartFolder)
		if got := rel.connect(t).volumes(t); !slices.Equal(got, []string{"data=key"}) {
			t.Errorf("the volumes are %v", got)
		}
	})
}

// testColdStart deletes the runner's Pod and measures how long its successor takes to be
// Ready: once, or up to three times, for the machine may be busy with something else.
func testColdStart(t *testing.T, rel *installation) {
	for range 3 {
		took := coldStart(t, rel)
		t.Logf("Ready after %s", took.Round(10*time.Millisecond))
		if took <= readyLimit {
			return
		}
	}
	t.Errorf("it is never Ready within %s", readyLimit)
}

func coldStart(t *testing.T, rel *installation) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	old := rel.pods(t)
	if len(old) != 1 {
		t.Fatalf("there are %d Pods", len(old))
	}
	pods := suite.admin.CoreV1().Pods(rel.namespace)
	seen, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: old[0].ResourceVersion, LabelSelector: "app.kubernetes.io/name=k8s-runner"})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	if err := pods.Delete(ctx, old[0].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	var begin time.Time
	for event := range seen.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || pod.UID == old[0].UID {
			continue
		}
		if event.Type == watch.Added {
			begin = time.Now()
		}
		if !begin.IsZero() && isReady(pod) {
			return time.Since(begin)
		}
	}
	t.Fatal("no other Pod became Ready")
	return 0
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// testUninstall: workloads end before their fence goes, and only claims are left.
func testUninstall(t *testing.T, rel *installation, r *runner) {
	if pods := r.podNames(t); len(pods) != 1 {
		t.Fatalf("the workloads are %v", pods)
	}
	rel.helm(t, nil, "uninstall", rel.release)
	eventually(t, 2*time.Minute, "nothing is left", func() error {
		left := append(rel.left(t, rel.namespace), rel.left(t, rel.workloads)...)
		if diff := cmp.Diff([]string{rel.workloads + "/persistentvolumeclaims/data"}, left); diff != "" {
			return fmt.Errorf("(-want +left):\n%s", diff)
		}
		return nil
	})
}

// left lists what is in a namespace beside what Kubernetes puts into each, and Events.
func (r *installation) left(t testing.TB, namespace string) (names []string) {
	t.Helper()
	lists, err := suite.admin.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		for _, kind := range list.APIResources {
			if kind.Name == "events" || !slices.Contains(kind.Verbs, "list") || strings.Contains(kind.Name, "/") {
				continue
			}
			prefix := "/apis/"
			if list.GroupVersion == "v1" {
				prefix = "/api/"
			}
			found := &metav1.PartialObjectMetadataList{}
			path := prefix + list.GroupVersion + "/namespaces/" + namespace + "/" + kind.Name
			data, err := suite.admin.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
			if err == nil {
				err = json.Unmarshal(data, found)
			}
			if err != nil {
				t.Fatalf("listing %s of %s: %v", kind.Name, namespace, err)
			}
			for _, object := range found.Items {
				if name := kind.Name + "/" + object.Name; name != "serviceaccounts/default" && name != "configmaps/kube-root-ca.crt" {
					names = append(names, namespace+"/"+name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}
