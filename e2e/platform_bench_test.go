//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/e2e/gateway"
	"github.com/agynio/k8s-runner/workload"
)

// BenchmarkReports measures how long after the API server tells that a workload is
// ready the platform knows it: of a thousand that become so within 20 s. The API server's
// word is taken from a watch of the benchmark's own, which hears it at the same time as
// the runner's; so the time is what the runner and the way to the gateway add.
func BenchmarkReports(b *testing.B) {
	const workloads, within = 1000, 20 * time.Second
	p := newPlatform(b)
	ns := newNamespace(b)
	r := startRunner(b, ns, p.flags()...)
	cordon(b, ns.name)
	ids := r.pending(b, workloads)
	heard := hear(b, ns.name)
	for b.Loop() {
		pace := time.NewTicker(within / workloads)
		defer pace.Stop()
		group, ctx := errgroup.WithContext(b.Context())
		group.SetLimit(20)
		for _, id := range ids {
			<-pace.C
			group.Go(func() error { return saysRunning(ctx, ns.name, "workload-"+id) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		eventually(b, 10*time.Second, "all are told", func() error { return p.wantAll(ids, 0) })
	}
	var took []time.Duration
	for _, id := range ids {
		runs := slices.DeleteFunc(p.States(id), func(s gateway.Told) bool { return s.GetStatus() != reportedRunning })
		if len(runs) != 1 {
			b.Errorf("of %s it is told %d times that it runs", id, len(runs))
		}
		took = append(took, max(0, runs[0].At.Sub(heard(id))))
		p.wantForward(b, id)
	}
	for _, of := range []int{50, 99} {
		b.ReportMetric(milliseconds(percentile(took, of)), fmt.Sprintf("p%d-ms", of))
	}
	b.ReportMetric(0, "ns/op")
}

// pending makes so many Pods of workloads, which nobody runs, and returns their ids.
func (r *runner) pending(b *testing.B, many int) (ids []string) {
	b.Helper()
	render := renderer(b, r.namespace)
	pods := admin(b).Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(r.namespace)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(10)
	for range many {
		req := labelled()
		ids = append(ids, req.GetWorkloadId())
		group.Go(func() error {
			pod, err := render(req)
			if err != nil {
				return err
			}
			_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return ids
}

// hear watches the Pods of a namespace, and returns what tells when it heard that one
// of them was ready.
func hear(b *testing.B, namespace string) func(id string) time.Time {
	b.Helper()
	watching, err := suite.admin.CoreV1().Pods(namespace).Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(watching.Stop)
	var mu sync.Mutex
	times := map[string]time.Time{}
	go func() {
		for event := range watching.ResultChan() {
			now := time.Now()
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
				continue
			}
			mu.Lock()
			if id := pod.Labels[workload.LabelID]; times[id].IsZero() {
				times[id] = now
			}
			mu.Unlock()
		}
	}()
	return func(id string) time.Time {
		mu.Lock()
		defer mu.Unlock()
		return times[id]
	}
}
