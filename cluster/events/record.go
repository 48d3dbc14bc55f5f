package events

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

// newRecord is e as kubectl prints it in JSON.
func newRecord(e *corev1.Event) (workload.EventRecord, error) {
	shown := *e
	shown.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	shown.ManagedFields = nil
	text, err := json.Marshal(&shown)
	if err != nil {
		return workload.EventRecord{}, fmt.Errorf("writing the event %s: %w", e.Name, err)
	}
	return workload.EventRecord{JSON: string(text), At: at(e)}, nil
}

// at is when e happened last. Older and newer reporters fill different fields.
func at(e *corev1.Event) time.Time {
	times := []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	latest := time.Time{}
	for _, t := range times {
		if t.After(latest) {
			latest = t
		}
	}
	if latest.IsZero() {
		return e.CreationTimestamp.Time
	}
	return latest
}
