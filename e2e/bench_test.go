//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/templates"
)

// BenchmarkReads measures reads at 30 workloads, through gRPC.
func BenchmarkReads(b *testing.B) {
	r := startRunner(b, newNamespace(b))
	cordon(b)
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
// against bare client-go creating the same Pods in the same run. The node is
// cordoned, so that only the API's cost counts. The two take turns, and the
// ratio is that of each pair of turns, so that a machine whose speed drifts
// changes both.
func BenchmarkStart(b *testing.B) {
	const callers, starts, turns = 10, 200, 5
	ns := newNamespace(b)
	r := startRunner(b, ns)
	cordon(b)
	bare := bareClient(b)
	pods := renderer(b)
	viaRunner := func(ctx context.Context) error {
		_, err := r.StartWorkload(ctx, labelled())
		return err
	}
	viaClient := func(ctx context.Context) error {
		pod, err := pods(labelled(), ns.name)
		if err != nil {
			return err
		}
		_, err = bare.CoreV1().Pods(ns.name).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	var runnerRates, bareRates, ratios []float64
	for b.Loop() {
		for range turns {
			clear := func() { clearPods(b, ns.name) }
			mine := rate(b, callers, starts, viaRunner)
			clear()
			theirs := rate(b, callers, starts, viaClient)
			clear()
			runnerRates, bareRates, ratios = append(runnerRates, mine), append(bareRates, theirs), append(ratios, mine/theirs)
		}
	}
	b.ReportMetric(percentile(runnerRates, 50), "runner-starts/s")
	b.ReportMetric(percentile(bareRates, 50), "bare-creates/s")
	b.ReportMetric(percentile(ratios, 50), "ratio")
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
func renderer(b *testing.B) func(*runnerv1.StartWorkloadRequest, string) (*corev1.Pod, error) {
	b.Helper()
	files, err := templates.Shipped()
	if err != nil {
		b.Fatal(err)
	}
	set, err := render.Compile(files)
	if err != nil {
		b.Fatal(err)
	}
	return func(req *runnerv1.StartWorkloadRequest, namespace string) (*corev1.Pod, error) {
		spec, err := request.Parse(req)
		if err != nil {
			return nil, err
		}
		manifests, err := set.Render(spec, render.DefaultSettings(namespace))
		if err != nil {
			return nil, err
		}
		pod := &corev1.Pod{}
		return pod, runtime.DefaultUnstructuredConverter.FromUnstructured(manifests[0].Object, pod)
	}
}

// bareClient is client-go as it comes, without its throttle.
func bareClient(b *testing.B) kubernetes.Interface {
	b.Helper()
	config := rest.CopyConfig(suite.config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func clearPods(b *testing.B, namespace string) {
	b.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := suite.admin.CoreV1().Pods(namespace).DeleteCollection(b.Context(), now, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	eventually(b, time.Minute, "the Pods are gone", func() error {
		list, err := suite.admin.CoreV1().Pods(namespace).List(b.Context(), metav1.ListOptions{Limit: 1})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("some are left")
		}
		return err
	})
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
