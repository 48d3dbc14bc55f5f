package events

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/agynio/k8s-runner/workload"
)

// Fields that a filter may name.
const (
	byKind      = "involvedObject.kind"
	byName      = "involvedObject.name"
	byNamespace = "involvedObject.namespace"
	byUID       = "involvedObject.uid"
	eventName   = "metadata.name"
	namespace   = "namespace"
	reason      = "reason"
	eventType   = "type"
)

// Bounds of a request.
const (
	maxFilters = 64
	maxValues  = 1000
)

func known() []string {
	return []string{byKind, byName, byNamespace, byUID, eventName, namespace, reason, eventType}
}

// value is that of a field of an event, which known lists.
func value(event *corev1.Event, field string) string {
	switch field {
	case byKind:
		return event.InvolvedObject.Kind
	case byName:
		return event.InvolvedObject.Name
	case byNamespace:
		return event.InvolvedObject.Namespace
	case byUID:
		return string(event.InvolvedObject.UID)
	case eventName:
		return event.Name
	case namespace:
		return event.Namespace
	case reason:
		return event.Reason
	}
	return event.Type
}

// check reports every fault of filters.
func check(filters []workload.EventFilter) error {
	var faults []workload.Violation
	fault := func(field, token, format string, args ...any) {
		faults = append(faults, workload.Violation{Field: field, Token: token, Message: fmt.Sprintf(format, args...)})
	}
	if len(filters) > maxFilters {
		fault("filters", "too_many", "there are more than %d", maxFilters)
		return workload.Invalid(faults)
	}
	for i, f := range filters {
		if !slices.Contains(known(), f.Field) {
			fault(fmt.Sprintf("filters[%d].key", i), "unknown_filter_key", "no event is found by it, but by %s", strings.Join(known(), ", "))
		}
		switch values := fmt.Sprintf("filters[%d].values", i); {
		case len(f.Values) == 0:
			fault(values, "filter_values_required", "there is none, which no event has")
		case len(f.Values) > maxValues:
			fault(values, "too_many", "there are more than %d", maxValues)
		}
	}
	return workload.Invalid(faults)
}

// meets reports whether an event meets all filters.
func meets(event *corev1.Event, filters []workload.EventFilter) bool {
	for _, f := range filters {
		if !slices.Contains(f.Values, value(event, f.Field)) {
			return false
		}
	}
	return true
}

// selector is what the API server can do of filters: those of one value. It knows
// nothing of a namespace, because there is only one.
func selector(filters []workload.EventFilter) string {
	var terms []fields.Selector
	for _, f := range filters {
		if len(f.Values) == 1 && f.Field != namespace {
			terms = append(terms, fields.OneTermEqualSelector(f.Field, f.Values[0]))
		}
	}
	return fields.AndSelectors(terms...).String()
}
