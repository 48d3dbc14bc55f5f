package events

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agynio/k8s-runner/workload"
)

func filter(field string, values ...string) workload.EventFilter {
	return workload.EventFilter{Field: field, Values: values}
}

func anEvent() *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "name", Namespace: "space", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		InvolvedObject: corev1.ObjectReference{Kind: "kind", Name: "object", Namespace: "its-space", UID: "uid"},
		Reason:         "reason", Type: "type", Message: "<a> & \"b\"", Count: 3,
	}
}

func TestFilters(t *testing.T) {
	for name, c := range map[string]struct {
		filters  []workload.EventFilter
		want     bool
		selector string
	}{
		"none": {nil, true, ""},
		"every field": {[]workload.EventFilter{
			filter(byKind, "kind"), filter(byName, "object"), filter(byNamespace, "its-space"), filter(byUID, "uid"),
			filter(eventName, "name"), filter(namespace, "space"), filter(reason, "reason"), filter(eventType, "type"),
		}, true, "involvedObject.kind=kind,involvedObject.name=object,involvedObject.namespace=its-space,involvedObject.uid=uid,metadata.name=name,reason=reason,type=type"},
		"another kind":       {[]workload.EventFilter{filter(byKind, "x")}, false, "involvedObject.kind=x"},
		"another name":       {[]workload.EventFilter{filter(byName, "x")}, false, "involvedObject.name=x"},
		"another namespace":  {[]workload.EventFilter{filter(namespace, "x")}, false, ""},
		"of two values one":  {[]workload.EventFilter{filter(reason, "x", "reason")}, true, ""},
		"of two values none": {[]workload.EventFilter{filter(reason, "x", "y")}, false, ""},
		"of two filters one": {[]workload.EventFilter{filter(reason, "reason"), filter(eventType, "x")}, false, "reason=reason,type=x"},
		"twice one field":    {[]workload.EventFilter{filter(reason, "reason", "x"), filter(reason, "reason")}, true, "reason=reason"},
		"signs":              {[]workload.EventFilter{filter(reason, "a,b=c\\")}, false, `reason=a\,b\=c\\`},
		"an empty value":     {[]workload.EventFilter{filter(reason, "")}, false, "reason="},
	} {
		t.Run(name, func(t *testing.T) {
			if err := check(c.filters); err != nil {
				t.Error(err)
			}
			if got := meets(anEvent(), c.filters); got != c.want {
				t.Errorf("it is met: %v", got)
			}
			if got := selector(c.filters); got != c.selector {
				t.Errorf("the API server is asked for %s", got)
			}
		})
	}
}

func TestRefusedFilters(t *testing.T) {
	for name, c := range map[string]struct {
		filters []workload.EventFilter
		want    []string
	}{
		"unknown":    {[]workload.EventFilter{filter(reason, "a"), filter("source", "a"), filter("", "a")}, []string{"filters[1].key unknown_filter_key", "filters[2].key unknown_filter_key"}},
		"no values":  {[]workload.EventFilter{filter(reason)}, []string{"filters[0].values filter_values_required"}},
		"too many":   {make([]workload.EventFilter, maxFilters+1), []string{"filters too_many"}},
		"too much":   {[]workload.EventFilter{filter(reason, make([]string, maxValues+1)...)}, []string{"filters[0].values too_many"}},
		"everything": {[]workload.EventFilter{filter("x")}, []string{"filters[0].key unknown_filter_key", "filters[0].values filter_values_required"}},
	} {
		t.Run(name, func(t *testing.T) {
			var domain *workload.Error
			if !errors.As(check(c.filters), &domain) || domain.Kind != workload.InvalidArgument {
				t.Fatal("it is not refused")
			}
			var got []string
			for _, v := range domain.Violations {
				got = append(got, v.Field+" "+v.Token)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecord is what Kubernetes writes.
func TestRecord(t *testing.T) {
	event := anEvent()
	event.LastTimestamp = metav1.Unix(10, 0)
	record, err := recordOf(event)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"Event","apiVersion":"v1","metadata":{"name":"name","namespace":"space"},` +
		`"involvedObject":{"kind":"kind","namespace":"its-space","name":"object","uid":"uid"},` +
		`"reason":"reason","message":"\u003ca\u003e \u0026 \"b\"","source":{},"firstTimestamp":null,"lastTimestamp":"1970-01-01T00:00:10Z",` +
		`"count":3,"type":"type","eventTime":null,"reportingComponent":"","reportingInstance":""}`
	if diff := cmp.Diff(want, record.JSON); diff != "" || record.At.Unix() != 10 {
		t.Errorf("at %v (-want +got):\n%s", record.At, diff)
	}
}

// TestAt is the latest of an event's times.
func TestAt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Event)
		want   int64
	}{
		"last":  {func(e *corev1.Event) { e.FirstTimestamp, e.LastTimestamp = metav1.Unix(1, 0), metav1.Unix(2, 0) }, 2},
		"first": {func(e *corev1.Event) { e.FirstTimestamp = metav1.Unix(1, 0) }, 1},
		"event": {func(e *corev1.Event) { e.EventTime = metav1.NewMicroTime(time.Unix(3, 0)) }, 3},
		"series": {func(e *corev1.Event) {
			e.EventTime, e.Series = metav1.NewMicroTime(time.Unix(3, 0)), &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(time.Unix(4, 0))}
		}, 4},
		"created": {func(e *corev1.Event) { e.CreationTimestamp = metav1.Unix(5, 0) }, 5},
	} {
		event := anEvent()
		c.change(event)
		if got := at(event); got.Unix() != c.want {
			t.Errorf("%s: it is %v", name, got)
		}
	}
}
