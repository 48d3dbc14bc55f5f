package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/workload"
)

// inCluster runs test with a watched cache of a cluster that has pods. Time is
// not real, and a goroutine that stays behind fails the test.
func inCluster(t *testing.T, test func(t *testing.T, p *Pods, client *fake.Clientset), pods ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(pods...)
		p, err := NewPods(client, "workloads")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			p.Run(ctx)
			close(ended)
		}()
		if err := p.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		test(t, p, client)
		cancel()
		<-ended
	})
}

// create, update and remove write to the cluster; the watch has brought it when
// they return.
func create(t *testing.T, client *fake.Clientset, pod *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(pod.Namespace).Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func update(t *testing.T, client *fake.Clientset, pod *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(pod.Namespace).Update(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func remove(t *testing.T, client *fake.Clientset) {
	t.Helper()
	if err := client.CoreV1().Pods("workloads").Delete(context.Background(), "workload-"+id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func version(v string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.ResourceVersion = v }
}

func named(otherID string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Name, p.Labels["agyn.io/workload-id"] = "workload-"+otherID, otherID
	}
}

func going(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = ptr(at(1)), []string{"a/b"} }

// asWritten is pod as the API server returns it to the writer.
func asWritten(t *testing.T, pod *corev1.Pod) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// ids are those of the workloads with labels.
func ids(p *Pods, with map[string]string) map[string]bool {
	found := map[string]bool{}
	for _, s := range p.List(with) {
		found[s.ID] = true
	}
	return found
}

func TestReads(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		if s, ok := p.Get(id); !ok || s.UID != "uid" {
			t.Errorf("Get returns %v, %v", s, ok)
		}
		if s, ok := p.Get("b"); !ok || s.ID != "b" {
			t.Errorf("Get returns %v, %v", s, ok)
		}
		if s, ok := p.Get("c"); ok {
			t.Errorf("of another namespace Get returns %v", s)
		}
		if diff := cmp.Diff(map[string]bool{id: true, "b": true}, ids(p, nil)); diff != "" {
			t.Errorf("all (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]bool{"b": true}, ids(p, map[string]string{"team": "x"})); diff != "" {
			t.Errorf("with a label (-want +got):\n%s", diff)
		}
		remove(t, client)
		if s, ok := p.Get(id); ok {
			t.Errorf("of what was deleted Get returns %v", s)
		}
		update(t, client, aPod(named("b"), version("9"), phase(corev1.PodRunning)))
		if s, _ := p.Get("b"); s == nil || s.Phase != workload.PhaseRunning || len(p.List(map[string]string{"team": "x"})) != 0 {
			t.Errorf("after an update Get returns %v", s)
		}
	},
		aPod(),
		aPod(named("b"), func(p *corev1.Pod) { p.Labels["team"] = "x" }),
		aPod(named("c"), func(p *corev1.Pod) { p.Namespace = "others" }),
		aPod(named("d"), func(p *corev1.Pod) { delete(p.Labels, "app.kubernetes.io/managed-by") }),
		aPod(named("e"), func(p *corev1.Pod) { delete(p.Labels, "agyn.io/workload-id") }),
	)
}

func TestReadsCostNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		client.ClearActions()
		p.Get(id)
		p.Get("b")
		p.List(nil)
		if calls := client.Actions(); len(calls) > 0 {
			t.Errorf("they called %v", calls)
		}
	}, aPod())
}

func TestWaitForSyncEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPods(fake.NewClientset(), "workloads")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := p.WaitForSync(ctx); err == nil { // nothing runs
			t.Error("the cache is said to be filled")
		}
	})
}

// TestWrittenPodsAreShown until the watch brings them.
func TestWrittenPodsAreShown(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"), func(p *corev1.Pod) { p.Labels["team"] = "x" })))
		if s, ok := p.Get(id); !ok || s.UID != "uid" || s.Digest != "digest" {
			t.Errorf("Get returns %v, %v", s, ok)
		}
		if diff := cmp.Diff(map[string]bool{id: true}, ids(p, map[string]string{"team": "x"})); diff != "" {
			t.Errorf("List (-want +got):\n%s", diff)
		}
		if found := ids(p, map[string]string{"team": "y"}); len(found) > 0 {
			t.Errorf("with another label List returns %v", found)
		}
		create(t, client, aPod(version("5"), phase(corev1.PodRunning)))
		if s, ok := p.Get(id); !ok || s.Phase != workload.PhaseRunning || len(p.List(nil)) != 1 {
			t.Errorf("then Get returns %v, and List %d", s, len(p.List(nil)))
		}
		remove(t, client)
		if s, ok := p.Get(id); ok || len(p.List(nil)) != 0 {
			t.Errorf("of what was deleted Get returns %v", s)
		}
	})
}

// TestWrittenPodsReplaceOlderOnes: an earlier Pod of the same name, whose end
// the watch has not brought yet, hides no new one.
func TestWrittenPodsReplaceOlderOnes(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"), func(p *corev1.Pod) { p.UID = "new" })))
		if s, ok := p.Get(id); !ok || s.UID != "new" {
			t.Errorf("Get returns %v", s)
		}
		if all := p.List(nil); len(all) != 1 || all[0].UID != "new" {
			t.Errorf("List returns %v", all)
		}
	}, aPod(version("2"), going))
}

// TestWrittenPodsDoNotComeBack: what the watch has brought already is not shown
// again, whatever became of it since.
func TestWrittenPodsDoNotComeBack(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		create(t, client, aPod(version("5")))
		remove(t, client)
		p.Wrote(asWritten(t, aPod(version("5"))))
		if s, ok := p.Get(id); ok || len(p.List(nil)) != 0 {
			t.Errorf("Get returns %v", s)
		}
	})
}

// TestWrittenPodsEndWithTheirs: a list without it tells of a Pod as the watch last
// had it, which was before it was written; another one of its name stays.
func TestWrittenPodsEndWithTheirs(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		missed := func(uid types.UID) {
			p.handler().OnDelete(cache.DeletedFinalStateUnknown{Obj: aPod(version("2"), func(p *corev1.Pod) { p.UID = uid })})
		}
		p.Wrote(asWritten(t, aPod(version("5"))))
		missed("another")
		if _, ok := p.Get(id); !ok {
			t.Error("it went with another one")
		}
		missed(aPod().UID)
		if s, ok := p.Get(id); ok || len(p.List(nil)) != 0 {
			t.Errorf("Get returns %v", s)
		}
	})
}

// TestGonePodsStayGone: what the watch tells late of an earlier Pod of the name does not
// bring back one that is gone, nor does that hide the next one.
func TestGonePodsStayGone(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, client *fake.Clientset) {
		uid := func(uid types.UID) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = uid } }
		p.hide("workload-"+id, "second")
		update(t, client, aPod(version("3"), uid("first"), phase(corev1.PodRunning)))
		remove(t, client)
		create(t, client, aPod(version("5"), uid("second")))
		if s, ok := p.Get(id); ok || len(p.List(nil)) != 0 {
			t.Errorf("Get returns %v", s)
		}
		remove(t, client)
		create(t, client, aPod(version("7"), uid("third")))
		if s, ok := p.Get(id); !ok || s.UID != "third" {
			t.Errorf("of the next one Get returns %v, %v", s, ok)
		}
		if n := len(p.written.gone); n != 0 {
			t.Errorf("%d marks are left", n)
		}
	}, aPod(version("2"), func(p *corev1.Pod) { p.UID = "first" }))
}

// TestWrittenPodsAreForgotten when the watch does not bring them.
func TestWrittenPodsAreForgotten(t *testing.T) {
	inCluster(t, func(t *testing.T, p *Pods, _ *fake.Clientset) {
		p.Wrote(asWritten(t, aPod(version("5"))))
		time.Sleep(writtenLimit + time.Second) // of the test's own time
		if s, ok := p.Get(id); ok {
			t.Errorf("Get returns %v", s)
		}
		p.Wrote(asWritten(t, aPod(named("b"), version("6"))))
		if n := len(p.written.objects); n != 1 {
			t.Errorf("%d Pods are kept", n)
		}
		if found := ids(p, nil); len(found) != 1 || !found["b"] {
			t.Errorf("List returns %v", found)
		}
	})
}
