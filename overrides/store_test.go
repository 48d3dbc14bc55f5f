package overrides

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/agynio/k8s-runner/engine"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// prober refuses layers with a file called broken.yaml, and has a bug.
type prober struct{}

func (prober) Probe(_ context.Context, layers []render.Layer) (*engine.Engine, error) {
	for _, l := range layers {
		if _, panics := l.Files["panics.yaml"]; panics {
			panic("of a bug")
		}
		if _, broken := l.Files["broken.yaml"]; broken {
			return nil, errors.New(l.Name + "/broken.yaml:1: it is broken")
		}
	}
	return engine.New(engine.Options{Templates: map[string]string{"pod.yaml": ""}, Layers: layers})
}

type recorder chan string

func (r recorder) Record(_ context.Context, about *corev1.ConfigMap, _ bool, reason, message string) {
	first, _, _ := strings.Cut(message, "\n")
	r <- about.Name + " " + reason + ": " + first
}

// meter notes what it is told.
type meter chan string

func (m meter) TemplatesLoaded(at time.Time) {
	if at.IsZero() {
		m <- "loaded at no time"
		return
	}
	m <- "loaded"
}

func (m meter) TemplatesRejected() { m <- "rejected" }

// counted are the results so far.
func (m meter) counted() string {
	var results []string
	for range len(m) {
		results = append(results, <-m)
	}
	return strings.Join(results, ", ")
}

func layer(name, file string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u", ResourceVersion: file, Labels: map[string]string{workload.LabelTemplates: workload.TemplateFiles}},
		Data:       map[string]string{file: "x"},
	}
}

// start runs a Store until the test ends.
func start(t *testing.T, client *fake.Clientset) (*Store, recorder, meter) {
	t.Helper()
	events, results := make(recorder, 100), make(meter, 100)
	log := logrus.New()
	log.SetOutput(t.Output())
	s, err := New(client, "ns", prober{}, events, results, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := s.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return s, events, results
}

func (r recorder) want(t *testing.T, event string) {
	t.Helper()
	select {
	case got := <-r:
		if got != event {
			t.Fatalf("the Event is %q, want %q", got, event)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no Event %q", event)
	}
}

func TestStoreKeepsTheLastGoodLayers(t *testing.T) {
	client := fake.NewClientset(layer("a", "one.yaml"))
	s, events, results := start(t, client)
	events.want(t, "a TemplatesLoaded: the runner renders with it from now on")
	first := s.Current()
	maps := client.CoreV1().ConfigMaps("ns")
	if _, err := maps.Update(t.Context(), layer("a", "broken.yaml"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	events.want(t, "a TemplatesRejected: a/broken.yaml:1: it is broken")
	if now := s.Current(); now.Engine != first.Engine || now.Rejection == nil || now.Layers[0].ResourceVersion != "one.yaml" {
		t.Errorf("after a broken edit it is %+v", now)
	}
	if _, err := maps.Update(t.Context(), layer("a", "two.yaml"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	events.want(t, "a TemplatesLoaded: the runner renders with it from now on")
	if now := s.Current(); now.Engine == first.Engine || now.Rejection != nil {
		t.Errorf("after the mend it is %+v", now)
	}
	// Back to the first: also what was served before the broken edit loads again.
	if _, err := maps.Update(t.Context(), layer("a", "one.yaml"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	events.want(t, "a TemplatesLoaded: the runner renders with it from now on")
	if s.Current().Engine.Digest() != first.Engine.Digest() {
		t.Error("the same layers have another digest")
	}
	if got := results.counted(); got != "loaded, rejected, loaded, loaded" {
		t.Errorf("the results are %s", got)
	}
}

func TestStoreBadAtStart(t *testing.T) {
	s, events, _ := start(t, fake.NewClientset(layer("a", "broken.yaml"), layer("b", "one.yaml")))
	events.want(t, "a TemplatesRejected: a/broken.yaml:1: it is broken")
	_, _, err := s.Render(&runnerv1.StartWorkloadRequest{})
	var e *workload.Error
	if !errors.As(err, &e) || e.Kind != workload.FailedPrecondition || !strings.Contains(e.Message, "a/broken.yaml:1") {
		t.Errorf("a start gets %v", err)
	}
}

// TestStoreOutlivesPanics: a bug of ours that an edit finds is a rejection.
func TestStoreOutlivesPanics(t *testing.T) {
	client := fake.NewClientset(layer("a", "panics.yaml"), layer("b", "one.yaml"))
	s, events, _ := start(t, client)
	const told = "TemplatesRejected: the runner has a fault of its own in trying them; its log has the cause"
	events.want(t, "a "+told)
	events.want(t, "b "+told)
	if err := client.CoreV1().ConfigMaps("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	events.want(t, "b TemplatesLoaded: the runner renders with it from now on")
	if s.Current().Engine == nil {
		t.Error("nothing is served")
	}
}

// TestStoreWithoutPermission: a Role of before knows no ConfigMaps.
func TestStoreWithoutPermission(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
	})
	s, _, _ := start(t, client)
	if s.Current().Engine == nil {
		t.Error("the shipped templates are not used")
	}
}
