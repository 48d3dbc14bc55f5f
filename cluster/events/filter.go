package events

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/agynio/k8s-runner/workload"
)

// filter decides which Events a caller wants.
type filter struct {
	// selector is the part that the API server decides.
	selector string
	since    time.Time
	wants    []want
	// pods is not nil if Events of an earlier Pod of a name are left out.
	pods Pods
}

// want is a field with the values that do.
type want struct {
	value func(*corev1.Event) string
	of    []string
}

// A key of a filter: its value in an Event, and the field that the API server
// selects by.
type key struct {
	value func(*corev1.Event) string
	field string
}

func keyOf(name string) (key, bool) {
	k, ok := map[string]key{
		"involvedObject.name":      {func(e *corev1.Event) string { return e.InvolvedObject.Name }, name},
		"involvedObject.namespace": {func(e *corev1.Event) string { return e.InvolvedObject.Namespace }, name},
		"involvedObject.kind":      {func(e *corev1.Event) string { return e.InvolvedObject.Kind }, name},
		"involvedObject.uid":       {func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }, name},
		"reason":                   {func(e *corev1.Event) string { return e.Reason }, name},
		"type":                     {func(e *corev1.Event) string { return e.Type }, name},
		"namespace":                {func(e *corev1.Event) string { return e.Namespace }, "metadata.namespace"},
		"metadata.name":            {func(e *corev1.Event) string { return e.Name }, name},
	}[name]
	return k, ok
}

const allKeys = "involvedObject.name, involvedObject.namespace, involvedObject.kind, involvedObject.uid, reason, type, namespace, metadata.name"

// newFilter reads the filters of a request. A value of involvedObject.name may also
// be a workload's id.
func newFilter(req *workload.EventRequest, pods Pods) (*filter, error) {
	f := &filter{since: req.Since}
	var selectors []fields.Selector
	var violations []workload.Violation
	named, exact := false, false
	for i, asked := range req.Filters {
		at := fmt.Sprintf("filters[%d]", i)
		k, known := keyOf(asked.Field)
		switch {
		case !known:
			violations = append(violations, workload.Violation{Field: at + ".key", Token: "unknown_filter", Message: fmt.Sprintf("%q is none of %s", asked.Field, allKeys)})
			continue
		case len(asked.Values) == 0:
			violations = append(violations, workload.Violation{Field: at + ".values", Token: "filter_without_values", Message: "there is none"})
			continue
		}
		values := slices.Clone(asked.Values)
		named = named || asked.Field == "involvedObject.name"
		exact = exact || asked.Field == "involvedObject.uid"
		if asked.Field == "involvedObject.name" {
			for j, v := range values {
				if workload.IsID(v) {
					values[j] = workload.PodName(v)
				}
			}
		}
		if len(values) == 1 {
			selectors = append(selectors, fields.OneTermEqualSelector(k.field, values[0]))
		}
		f.wants = append(f.wants, want{k.value, values})
	}
	if named && !exact {
		f.pods = pods
	}
	f.selector = fields.AndSelectors(selectors...).String()
	return f, workload.Invalid(violations)
}

func (f *filter) matches(e *corev1.Event) bool {
	if at(e).Before(f.since) || f.isOfEarlierPod(e) {
		return false
	}
	return !slices.ContainsFunc(f.wants, func(w want) bool { return !slices.Contains(w.of, w.value(e)) })
}

// isOfEarlierPod reports whether e is of a Pod that was there before the one that
// has its name now. Times have seconds, and the cache may show the earlier one
// still; what is younger than the Pod there is no earlier one's.
func (f *filter) isOfEarlierPod(e *corev1.Event) bool {
	if f.pods == nil || e.InvolvedObject.Kind != "Pod" || !strings.HasPrefix(e.InvolvedObject.Name, workload.PodName("")) {
		return false
	}
	id, isPod := workload.ParseRef(e.InvolvedObject.Name)
	if !isPod {
		return false
	}
	now, there := f.pods.Get(id)
	return there && string(e.InvolvedObject.UID) != now.UID && !at(e).After(now.Created)
}
