package events

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/agynio/k8s-runner/workload"
)

// recordOf is an event as Kubernetes writes it, without what only servers need.
func recordOf(event *corev1.Event) (workload.EventRecord, error) {
	event.APIVersion, event.Kind, event.ManagedFields = "v1", "Event", nil
	text, err := json.Marshal(event)
	if err != nil {
		return workload.EventRecord{}, fmt.Errorf("encoding the event %s: %w", event.Name, err)
	}
	return workload.EventRecord{JSON: string(text), At: at(event)}, nil
}

// at is when an event happened last.
func at(event *corev1.Event) time.Time {
	last := event.LastTimestamp.Time
	times := []time.Time{event.FirstTimestamp.Time, event.EventTime.Time}
	if event.Series != nil {
		times = append(times, event.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	if last.IsZero() {
		return event.CreationTimestamp.Time
	}
	return last
}
