//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

var image = flag.String("image", "", "the runner's image, as the cluster can pull it, to test the chart with; make e2e-image makes it")

const (
	chartFolder = "../charts/k8s-runner"
	// helmLimit bounds one command of helm.
	helmLimit = 3 * time.Minute
)

// values are those of the chart.
type values map[string]any

// defaults are the least that an operator says: the ranges of the devcluster.
func defaults() values {
	return values{"fence": values{"podCIDRs": []string{"10.244.0.0/16"}, "serviceCIDRs": []string{"10.96.0.0/16"}}}
}

// with returns v with another value at a path.
func (v values) with(value any, path ...string) values {
	out := maps.Clone(v)
	if out == nil {
		out = values{}
	}
	if len(path) > 1 {
		inner, _ := out[path[0]].(values)
		value = inner.with(value, path[1:]...)
	}
	out[path[0]] = value
	return out
}

// installation is the chart, installed in a namespace of its own.
type installation struct {
	namespace string
	// release is its name, and that of what it makes.
	release string
	// workloads is the namespace of the workloads.
	workloads string
	// account is the runner's service account.
	account string
	// metrics is where the listener of metrics and probes is found, with -chart.
	metrics string
}

// install installs the chart, and takes all of it away when the test ends.
func install(t testing.TB, v values) *installation {
	t.Helper()
	return installFrom(t, chartFolder, v)
}

// installFrom installs another chart than this one.
func installFrom(t testing.TB, chart string, v values) *installation {
	t.Helper()
	r := newInstallation(t)
	t.Cleanup(func() { removeNamespace(t, r.workloads) })
	r.helm(t, v, "install", r.release, chart)
	return r
}

// newInstallation makes the namespace for one, which goes with the test.
func newInstallation(t testing.TB) *installation {
	t.Helper()
	if *image == "" {
		t.Skip("-image is not set: there is no image of the runner to install; make e2e-chart makes it")
	}
	made, err := suite.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-release-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	r := &installation{namespace: made.Name, workloads: made.Name + "-workloads"}
	r.release = "k8s-runner-" + strings.TrimPrefix(made.Name, "e2e-release-")
	r.account = "system:serviceaccount:" + r.namespace + ":" + r.release
	t.Cleanup(func() {
		if t.Failed() {
			r.tell(t)
		}
		removeNamespace(t, r.namespace)
	})
	return r
}

// tell logs what an operator would look at.
func (r *installation) tell(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pods, err := suite.admin.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return
	}
	for _, p := range pods.Items {
		text, err := suite.admin.CoreV1().Pods(r.namespace).GetLogs(p.Name, &corev1.PodLogOptions{TailLines: new(int64(30))}).DoRaw(ctx)
		t.Logf("%s is %s %v, %v\n%s", p.Name, p.Status.Phase, p.Status.ContainerStatuses, err, text)
	}
}

// helm runs a command of the pinned helm, with values unless they are nil, and waits for
// what it makes.
func (r *installation) helm(t testing.TB, v values, args ...string) {
	t.Helper()
	if out, err := r.tryHelm(t, v, args...); err != nil {
		t.Fatalf("helm %s: %v\n%s", args[0], err, out)
	}
}

func (r *installation) tryHelm(t testing.TB, v values, args ...string) (output string, err error) {
	t.Helper()
	args = append(slices.Clone(args), "--namespace", r.namespace, "--wait", "--timeout", "2m")
	if v != nil {
		repository, tag, _ := strings.Cut(*image, ":")
		v = v.with(repository, "image", "repository").with(tag, "image", "tag")
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--values", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), helmLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", append([]string{"tool", "-modfile=../tools/helm/go.mod", "helm"}, args...)...).CombinedOutput()
	return string(out), err
}

// pods are those of the runner that nobody deletes.
func (r *installation) pods(t testing.TB) (pods []corev1.Pod) {
	t.Helper()
	list, err := suite.admin.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=k8s-runner"})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// connect returns a client of the runner, through its Service.
func (r *installation) connect(t testing.TB) *runner {
	t.Helper()
	c := &runner{namespace: r.workloads, account: r.account, log: &syncBuffer{}, address: r.throughService(t)}
	c.dial(t)
	eventually(t, 30*time.Second, "the runner answers", func() error {
		_, err := c.Ready(t.Context(), &runnerv1.ReadyRequest{})
		return err
	})
	return c
}

// throughService is an address of this machine that leads to the runner's Service.
func (r *installation) throughService(t testing.TB) string {
	t.Helper()
	service, err := suite.admin.CoreV1().Services(r.namespace).Get(t.Context(), r.release, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return forward(t, fmt.Sprintf("%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port))
}

// devcluster is a command of the cluster's own program.
func devcluster(ctx context.Context, t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	dir := filepath.Dir(os.Getenv("KUBECONFIG"))
	program := filepath.Join(dir, "bin", "devcluster")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("only a devcluster has a network to look into: %v", err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "DEVCLUSTER_DIR="+dir)
	return cmd
}

// onNode runs a command in the node's network, and returns what it prints.
func onNode(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := devcluster(ctx, t, append([]string{"netns", "--"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("on the node, %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
