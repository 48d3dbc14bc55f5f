//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// BenchmarkStartFull measures starts with a pull credential, an inline file and a
// named volume, from ten callers and from one, against bare client-go creating the
// same four objects one after the other. They take short turns and take turns at
// being first, for a machine's speed changes within seconds.
func BenchmarkStartFull(b *testing.B) {
	const callers, starts, turns, alone = 10, 50, 10, 120
	ns := newNamespace(b)
	r := startRunner(b, ns)
	cordon(b, ns.name)
	bare := newBareStart(b, ns)
	runner := func(ctx context.Context) error {
		_, err := r.StartWorkload(ctx, full(newID(), "x"))
		return err
	}
	both := []func(context.Context) error{runner, bare}
	var mine, theirs, ratios []float64
	var oneMine, oneTheirs []time.Duration
	for b.Loop() {
		for turn := range turns {
			rates := [2]float64{}
			for i := range both {
				i = (i + turn) % 2
				awaitIdle(b)
				rates[i] = rate(b, callers, starts, both[i])
				clearPods(b, ns.name)
			}
			mine, theirs, ratios = append(mine, rates[0]), append(theirs, rates[1]), append(ratios, rates[0]/rates[1])
		}
		awaitIdle(b)
		for range alone {
			oneMine, oneTheirs = append(oneMine, duration(b, runner)), append(oneTheirs, duration(b, bare))
		}
		clearPods(b, ns.name)
	}
	b.ReportMetric(percentile(mine, 50), "runner-starts/s")
	b.ReportMetric(percentile(theirs, 50), "bare-starts/s")
	b.ReportMetric(percentile(ratios, 50), "ratio-to-bare")
	b.ReportMetric(milliseconds(percentile(oneMine, 50)), "alone-p50-ms")
	b.ReportMetric(milliseconds(percentile(oneMine, 50)-percentile(oneTheirs, 50)), "alone-over-bare-p50-ms")
	r.logPhases(b)
}

func duration(b *testing.B, work func(context.Context) error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := work(b.Context()); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// newBareStart returns a function that creates what the runner would, and no more:
// the Pod without a gate, its Secrets without an owner.
func newBareStart(b *testing.B, ns *namespace) func(context.Context) error {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", ns.kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	of := func(resource string) dynamic.ResourceInterface {
		return client.Resource(corev1.SchemeGroupVersion.WithResource(resource)).Namespace(ns.name)
	}
	render := newEngine(b, ns.name, false)
	return func(ctx context.Context) error {
		_, manifests, err := render.Render(full(newID(), "x"))
		if err != nil {
			return err
		}
		create := func(resource string, objects ...*unstructured.Unstructured) error {
			for _, object := range objects {
				if _, err := of(resource).Create(ctx, object, metav1.CreateOptions{}); err != nil {
					return fmt.Errorf("creating %s: %w", object.GetName(), err)
				}
			}
			return nil
		}
		if err := create("secrets", manifests.Owned...); err != nil {
			return err
		}
		if err := create("persistentvolumeclaims", manifests.Claims...); err != nil {
			return err
		}
		return create("pods", manifests.Pod)
	}
}

// logPhases tells where the time of starts went, if the metrics do.
func (r *runner) logPhases(b *testing.B) {
	b.Helper()
	_, text := r.get(b, "/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "k8s_runner_start_phase_seconds_sum") || strings.HasPrefix(line, "k8s_runner_start_phase_seconds_count") {
			b.Log(strings.TrimSpace(line))
		}
	}
}
