//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

var manyPods = flag.Int("pods", 2000, "how many workloads BenchmarkManyWorkloads has in the end")

// fewPods is what the many are compared with.
const fewPods = 30

// BenchmarkManyWorkloads measures reads at 30 workloads and then at many in the
// same run, and the memory that each of the many costs. Their Pods are made with
// the runner's labels, and said to run, on a node that takes none.
func BenchmarkManyWorkloads(b *testing.B) {
	ns := newNamespace(b)
	r := startRunner(b, ns)
	cordon(b, ns.name)
	ids := r.simulate(b, nil, fewPods)
	calls := map[string]func(ctx context.Context, i int) (found int, err error){
		"Inspect": func(ctx context.Context, i int) (int, error) {
			_, err := r.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{WorkloadId: ids[i%len(ids)]})
			return 1, err
		},
		"List": func(ctx context.Context, _ int) (int, error) {
			list, err := r.ListWorkloads(ctx, &runnerv1.ListWorkloadsRequest{})
			return len(list.GetWorkloads()), err
		},
		"Find": func(ctx context.Context, i int) (int, error) {
			list, err := r.FindWorkloadsByLabels(ctx, &runnerv1.FindWorkloadsByLabelsRequest{Labels: map[string]string{"one": ids[i%len(ids)]}})
			return len(list.GetTargetIds()), err
		},
	}
	few, many := map[string][2]float64{}, map[string][2]float64{}
	for name, call := range calls {
		few[name] = timed(b, call)
	}
	residentFew, heapFew := r.memory(b)
	ids = r.simulate(b, ids, *manyPods)
	residentMany, heapMany := r.memory(b)
	for b.Loop() {
		for name, call := range calls {
			many[name] = timed(b, call)
		}
	}
	for name := range calls {
		for i, p := range []string{"p50", "p99"} {
			b.ReportMetric(few[name][i], fmt.Sprintf("%s-%s-ms-at-%d", name, p, fewPods))
			b.ReportMetric(many[name][i], fmt.Sprintf("%s-%s-ms-at-%d", name, p, len(ids)))
			b.ReportMetric(many[name][i]/few[name][i], fmt.Sprintf("%s-%s-ratio", name, p))
		}
	}
	more := float64(len(ids) - fewPods)
	b.ReportMetric((residentMany-residentFew)/1024/more, "resident-KiB/workload")
	b.ReportMetric((heapMany-heapFew)/1024/more, "heap-KiB/workload")
	b.ReportMetric(residentMany/1024/1024, "resident-MiB")
}

// timed returns the p50 and the p99 of many calls, in milliseconds.
func timed(b *testing.B, call func(ctx context.Context, i int) (int, error)) [2]float64 {
	b.Helper()
	took := make([]time.Duration, 0, 1000)
	for i := range 1000 {
		begin := time.Now()
		if found, err := call(b.Context(), i*37); err != nil || found == 0 {
			b.Fatalf("%d are found, %v", found, err)
		}
		took = append(took, time.Since(begin))
	}
	return [2]float64{milliseconds(percentile(took, 50)), milliseconds(percentile(took, 99))}
}

// simulate makes Pods of workloads until there are so many that run, and returns
// the ids of all.
func (r *runner) simulate(b testing.TB, ids []string, many int) []string {
	b.Helper()
	render := renderer(b, r.namespace)
	pods := admin(b).Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(r.namespace)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(10)
	for range many - len(ids) {
		req := labelled()
		req.Labels["one"] = req.GetWorkloadId()
		ids = append(ids, req.GetWorkloadId())
		group.Go(func() error {
			pod, err := render(req)
			if err != nil {
				return err
			}
			if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
			return saysRunning(ctx, r.namespace, pod.GetName())
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	eventually(b, time.Minute, "the runner shows all", func() error {
		list, err := r.FindWorkloadsByLabels(b.Context(), &runnerv1.FindWorkloadsByLabelsRequest{})
		if err == nil && len(list.GetTargetIds()) != many {
			err = fmt.Errorf("%d of %d run", len(list.GetTargetIds()), many)
		}
		return err
	})
	return ids
}

// saysRunning has the API server say of a Pod what a kubelet would.
func saysRunning(ctx context.Context, namespace, name string) error {
	return says(ctx, namespace, name, 0)
}

// says has it say so, with a count of restarts.
func says(ctx context.Context, namespace, name string, restarts int) error {
	status := fmt.Sprintf(`{"status":{"phase":"Running","podIP":"192.0.2.1","conditions":[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}],
"containerStatuses":[{"name":"main","image":"docker.io/library/busybox:latest","imageID":"sha256:%064d","containerID":"containerd://%064d",
"ready":true,"started":true,"restartCount":%d,"state":{"running":{"startedAt":%q}}}]}}`, 1, 2, restarts, time.Now().UTC().Format(time.RFC3339))
	_, err := suite.admin.CoreV1().Pods(namespace).Patch(ctx, name, "application/strategic-merge-patch+json", []byte(status), metav1.PatchOptions{}, "status")
	return err
}

// memory returns the resident memory of the runner's process and what of its heap
// lives, in bytes.
func (r *runner) memory(b testing.TB) (resident, heap float64) {
	b.Helper()
	_, text := r.get(b, "/metrics")
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "process_resident_memory_bytes":
			resident = number
		case "go_memstats_heap_alloc_bytes":
			heap = number
		}
	}
	if resident == 0 || heap == 0 {
		b.Fatal("the metrics have no memory")
	}
	return resident, heap
}
