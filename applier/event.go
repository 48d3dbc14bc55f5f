package applier

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/agynio/k8s-runner/workload"
)

// maxEventMessage is what Kubernetes takes, in bytes.
const maxEventMessage = 1024

// Recorder makes Events.
type Recorder struct {
	client dynamic.Interface
	// failed is told of an Event that could not be made.
	failed func(error)
}

// NewRecorder returns a Recorder.
func NewRecorder(client dynamic.Interface, failed func(error)) *Recorder {
	return &Recorder{client: client, failed: failed}
}

// Record makes an Event of the ConfigMap about.
func (r *Recorder) Record(ctx context.Context, about *corev1.ConfigMap, good bool, reason, message string) {
	kind := corev1.EventTypeWarning
	if good {
		kind = corev1.EventTypeNormal
	}
	if len(message) > maxEventMessage {
		message = message[:maxEventMessage-len("…")] + "…"
	}
	now := metav1.NewTime(time.Now())
	event := &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: about.Name + ".", Namespace: about.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: about.Name, Namespace: about.Namespace,
			UID: about.UID, ResourceVersion: about.ResourceVersion,
		},
		Reason: reason, Message: message, Type: kind,
		Source:              corev1.EventSource{Component: workload.FieldManager},
		ReportingController: workload.FieldManager, ReportingInstance: workload.FieldManager,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
	if err == nil {
		events := r.client.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(about.Namespace)
		_, err = events.Create(ctx, &unstructured.Unstructured{Object: object}, createOptions())
	}
	if err != nil {
		r.failed(fmt.Errorf("making an Event of the ConfigMap %s: %w", about.Name, err))
	}
}
