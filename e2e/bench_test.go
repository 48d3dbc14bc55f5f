//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/templates"
)

// BenchmarkReads measures reads at 30 workloads, through gRPC.
func BenchmarkReads(b *testing.B) {
	r := startRunner(b, newNamespace(b))
	cordon(b, r.namespace)
	var ids []string
	for range 30 {
		req := labelled()
		r.start(b, req)
		ids = append(ids, req.GetWorkloadId())
	}
	measure := func(call func(i int) error) func(b *testing.B) {
		return func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				if err := call(i); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			b.ReportMetric(milliseconds(percentile(took, 50)), "p50-ms")
			b.ReportMetric(milliseconds(percentile(took, 99)), "p99-ms")
		}
	}
	b.Run("InspectWorkload", measure(func(i int) error {
		_, err := r.InspectWorkload(b.Context(), &runnerv1.InspectWorkloadRequest{WorkloadId: ids[i%len(ids)]})
		return err
	}))
	b.Run("ListWorkloads", measure(func(int) error {
		_, err := r.ListWorkloads(b.Context(), &runnerv1.ListWorkloadsRequest{})
		return err
	}))
	b.Run("FindWorkloadsByLabels", measure(func(int) error {
		_, err := r.FindWorkloadsByLabels(b.Context(), &runnerv1.FindWorkloadsByLabelsRequest{All: true})
		return err
	}))
}

// BenchmarkStart measures how many workloads ten callers start a second,
// against bare client-go creating the same Pods in the same run: its dynamic
// client, which the runner uses, and its typed one, which may speak protobuf.
// The node is cordoned, so that only the API's cost counts. All take turns, and
// a ratio is that of turns side by side, so that a machine whose speed drifts
// changes both.
func BenchmarkStart(b *testing.B) {
	const callers, starts, turns = 10, 500, 5
	ns := newNamespace(b)
	r := startRunner(b, ns)
	cordon(b, r.namespace)
	manifests := renderer(b, ns.name)
	typed, untyped := bareClients(b, ns)
	contenders := []struct {
		name  string
		start func(context.Context) error
	}{
		{"runner", func(ctx context.Context) error {
			_, err := r.StartWorkload(ctx, labelled())
			return err
		}},
		{"dynamic", func(ctx context.Context) error {
			pod, err := manifests(labelled())
			if err != nil {
				return err
			}
			_, err = untyped.Create(ctx, pod, metav1.CreateOptions{})
			return err
		}},
		{"typed", func(ctx context.Context) error {
			manifest, err := manifests(labelled())
			if err != nil {
				return err
			}
			pod := &corev1.Pod{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, pod); err != nil {
				return err
			}
			_, err = typed.CoreV1().Pods(ns.name).Create(ctx, pod, metav1.CreateOptions{})
			return err
		}},
	}
	rates, ratios := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for range turns {
			mine := 0.0
			for _, c := range contenders {
				awaitIdle(b)
				got := rate(b, callers, starts, c.start)
				clearPods(b, ns.name)
				if c.name == "runner" {
					mine = got
				}
				rates[c.name] = append(rates[c.name], got)
				ratios[c.name] = append(ratios[c.name], mine/got)
			}
		}
	}
	b.ReportMetric(percentile(rates["runner"], 50), "runner-starts/s")
	for _, bare := range []string{"dynamic", "typed"} {
		b.ReportMetric(percentile(rates[bare], 50), bare+"-creates/s")
		b.ReportMetric(percentile(ratios[bare], 50), "ratio-to-"+bare)
	}
}

// rate runs work the given number of times from so many callers and returns
// how many were done a second.
func rate(b *testing.B, callers, times int, work func(context.Context) error) float64 {
	b.Helper()
	begin := time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(callers)
	for range times {
		group.Go(func() error { return work(ctx) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return float64(times) / time.Since(begin).Seconds()
}

// renderer returns a function that makes the very Pod that the runner would.
func renderer(b testing.TB, namespace string) func(*runnerv1.StartWorkloadRequest) (*unstructured.Unstructured, error) {
	b.Helper()
	e := newEngine(b, namespace, false)
	return func(req *runnerv1.StartWorkloadRequest) (*unstructured.Unstructured, error) {
		_, manifests, err := e.Render(req)
		if err != nil {
			return nil, err
		}
		return manifests.Pod, nil
	}
}

// newEngine renders as a runner without a catalog does.
func newEngine(t testing.TB, namespace string, policy bool) *engine.Engine {
	t.Helper()
	files, err := templates.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	settings := config.Default()
	settings.Kube.Namespace, settings.NetworkPolicy.Enabled = namespace, policy
	e, err := engine.New(engine.Options{Templates: files, Catalog: &catalog.Catalog{}, Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// bareClients are client-go as it comes, without its throttle, under the
// service account of the runner: authorisation and audit cost the same.
func bareClients(b *testing.B, ns *namespace) (kubernetes.Interface, dynamic.ResourceInterface) {
	b.Helper()
	rest, err := clientcmd.BuildConfigFromFlags("", ns.kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	rest.QPS = -1
	typed, err := kubernetes.NewForConfig(rest)
	if err != nil {
		b.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(rest)
	if err != nil {
		b.Fatal(err)
	}
	return typed, untyped.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(ns.name)
}

func clearPods(b *testing.B, namespace string) {
	b.Helper()
	deletePods(b, namespace)
	eventually(b, time.Minute, "the Pods are gone", func() error {
		list, err := suite.admin.CoreV1().Pods(namespace).List(b.Context(), metav1.ListOptions{Limit: 1})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("some are left")
		}
		return err
	})
}

// awaitIdle waits until the machine has done what a turn left to do, since the
// cluster's controllers go on for seconds after it. On a machine that has other
// work it gives up waiting and says so.
func awaitIdle(b *testing.B) {
	b.Helper()
	const window, quiet, patience = 500 * time.Millisecond, 0.7, 30
	for range patience {
		idle, total := cpuTime(b)
		time.Sleep(window)
		idleAfter, totalAfter := cpuTime(b)
		if (idleAfter-idle)/(totalAfter-total) > quiet {
			return
		}
	}
	b.Log("the machine does not get idle: the figures are noisy")
}

// cpuTime returns the machine's idle and whole CPU time, in ticks.
func cpuTime(b *testing.B) (idle, total float64) {
	b.Helper()
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		b.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	for i, field := range strings.Fields(line)[1:] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += ticks
		if i == 3 || i == 4 { // idle, waiting for the disk
			idle += ticks
		}
	}
	return idle, total
}

func labelled() *runnerv1.StartWorkloadRequest {
	req := sleeper()
	req.Labels = map[string]string{"workload_key": "bench"}
	return req
}

// percentile returns the p-th percentile of values.
func percentile[T time.Duration | float64](values []T, p int) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
