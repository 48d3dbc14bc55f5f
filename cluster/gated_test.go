package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/agynio/k8s-runner/workload"
)

func gatedBy(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, n := range names {
			p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: n})
		}
	}
}

func created(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at(7).Time) }

// TestUnfinished: a Pod with the runner's gate is an unfinished start until the
// gate is lifted, also by this runner a moment ago; one with the gates of others
// is none, and neither is one that is going.
func TestUnfinished(t *testing.T) {
	const gate = "agyn.io/dependents"
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		want := []workload.Unfinished{{Pod: podName, UID: "uid", Version: "1", Created: at(7).Time}}
		equalTimes := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
		if diff := cmp.Diff(want, p.Unfinished(), equalTimes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.Wrote(asWritten(t, aPod(version("2"), created)))
		if got := p.Unfinished(); len(got) != 0 {
			t.Errorf("once this runner lifted the gate: %v", got)
		}
		update(t, client, aPod(version("2"), created, gatedBy("of-others")))
		if got := p.Unfinished(); len(got) != 0 {
			t.Errorf("once the gate is lifted: %v", got)
		}
	}, aPod(created, gatedBy("of-others", gate)), aPod(named("b"), gatedBy("of-others")), aPod(named("c"), gatedBy(gate), going), aPod(named("d")))
}
