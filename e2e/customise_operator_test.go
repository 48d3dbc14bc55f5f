//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// verdictLimit bounds the wait for what a runner makes of an edit.
const verdictLimit = 30 * time.Second

// operator edits the ConfigMaps of a namespace and reads the Events that tell
// what became of each edit. It serves one goroutine.
type operator struct {
	namespace string
	events    watch.Interface
	// told are the Events read so far.
	told map[edit][]*corev1.Event
}

// edit is one version of a ConfigMap.
type edit struct{ name, version string }

// layer is a ConfigMap to lay: a kind, and one key.
type layer struct{ kind, name, file, text string }

func newOperator(t testing.TB, ns *namespace) *operator {
	t.Helper()
	events, err := suite.admin.CoreV1().Events(ns.name).Watch(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=ConfigMap"})
	if err != nil {
		t.Fatalf("watching the Events of %s: %v", ns.name, err)
	}
	t.Cleanup(events.Stop)
	return &operator{namespace: ns.name, events: events, told: map[edit][]*corev1.Event{}}
}

// lay makes or changes a ConfigMap.
func (o *operator) lay(t testing.TB, name, kind string, data map[string]string) edit {
	t.Helper()
	return o.apply(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{workload.LabelTemplates: kind}}, Data: data,
	})
}

func (o *operator) apply(t testing.TB, m *corev1.ConfigMap) edit {
	t.Helper()
	maps := suite.admin.CoreV1().ConfigMaps(o.namespace)
	made, err := maps.Update(t.Context(), m, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		made, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatalf("laying the ConfigMap %s: %v", m.Name, err)
	}
	return edit{made.Name, made.ResourceVersion}
}

// layAll lays all of layers, waits until they count, and returns what takes them
// away.
func (o *operator) layAll(t testing.TB, layers ...layer) (remove func()) {
	t.Helper()
	var edits []edit
	for _, l := range layers {
		edits = append(edits, o.layOne(t, l))
	}
	o.loaded(t, edits...)
	return func() {
		for _, l := range layers {
			o.remove(t, l.name)
		}
	}
}

func (o *operator) layOne(t testing.TB, l layer) edit {
	t.Helper()
	return o.lay(t, l.name, l.kind, map[string]string{l.file: l.text})
}

// remove deletes ConfigMaps. No Event tells of that.
func (o *operator) remove(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := suite.admin.CoreV1().ConfigMaps(o.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatalf("deleting the ConfigMap %s: %v", name, err)
		}
	}
}

// loaded waits until the runner renders with each of the edits.
func (o *operator) loaded(t testing.TB, edits ...edit) {
	t.Helper()
	for _, e := range edits {
		o.await(t, e, "TemplatesLoaded")
	}
}

// rejected waits until e is rejected, and returns the reason.
func (o *operator) rejected(t testing.TB, e edit) string {
	t.Helper()
	verdict := o.verdict(t, e)
	if verdict.Reason != "TemplatesRejected" {
		t.Fatalf("what became of %s is %s: %s", e.name, verdict.Reason, verdict.Message)
	}
	return verdict.Message
}

// verdict waits for the first Event of e.
func (o *operator) verdict(t testing.TB, e edit) *corev1.Event {
	t.Helper()
	return o.await(t, e, "")
}

// await waits for an Event of e with reason; "" is any.
func (o *operator) await(t testing.TB, e edit, reason string) *corev1.Event {
	t.Helper()
	limit := time.NewTimer(verdictLimit)
	defer limit.Stop()
	for {
		for _, event := range o.told[e] {
			if reason == "" || event.Reason == reason {
				return event
			}
		}
		select {
		case got := <-o.events.ResultChan():
			event, ok := got.Object.(*corev1.Event)
			if !ok {
				t.Fatalf("the watch of Events ended with %v", got)
			}
			about := edit{event.InvolvedObject.Name, event.InvolvedObject.ResourceVersion}
			o.told[about] = append(o.told[about], event)
		case <-limit.C:
			t.Fatalf("no Event %s of %s within %s, but %v", reason, e.name, verdictLimit, o.told[e])
		}
	}
}

// count is how many Events with reason were read.
func (o *operator) count(reason string) int {
	n := 0
	for _, events := range o.told {
		for _, e := range events {
			if e.Reason == reason {
				n++
			}
		}
	}
	return n
}

// podOf starts req and returns its Pod.
func (r *runner) podOf(t testing.TB, req *runnerv1.StartWorkloadRequest) *corev1.Pod {
	t.Helper()
	r.start(t, req)
	return r.pod(t, req.GetWorkloadId())
}

// tempFile returns a file that holds text.
func tempFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// digest is that of the templates that made pod.
func digest(pod *corev1.Pod) string { return pod.Annotations[workload.AnnotationTemplates] }

// podPatch is a patch of the Pod of which the fields of the spec are given, each
// line indented by two.
func podPatch(spec string) string { return "apiVersion: v1\nkind: Pod\nspec:\n" + spec }
