package workload_test

import (
	"testing"

	"github.com/agynio/k8s-runner/workload"
)

func TestParseRef(t *testing.T) {
	const id = "00000000-0000-4000-8000-00000000000a"
	for ref, ok := range map[string]bool{
		id:                                     true,
		"workload-" + id:                       true,
		"":                                     false,
		"workload-":                            false,
		"workload-workload-" + id:              false,
		"pod-" + id:                            false,
		id + "\n":                              false,
		" " + id:                               false,
		id + ":main":                           false,
		"00000000-0000-4000-8000-00000000000A": false,
		"00000000-0000-4000-8000-00000000000":  false,
		"00000000000040008000000000000000000a": false,
	} {
		got, isRef := workload.ParseRef(ref)
		if isRef != ok || (ok && got != id) {
			t.Errorf("%q is %q, %v", ref, got, isRef)
		}
		if isRef && workload.PodName(got) != "workload-"+id {
			t.Errorf("its Pod is %q", workload.PodName(got))
		}
	}
}

func TestIdentityLabelsAreReserved(t *testing.T) {
	identity := workload.IdentityLabels("x")
	if len(identity) != 3 || identity["agyn.io/workload-id"] != "x" {
		t.Errorf("the identity is %v", identity)
	}
	for key := range identity {
		if !workload.IsReservedLabel(key) {
			t.Errorf("%s is not reserved", key)
		}
	}
	for _, key := range []string{"", "workload_key", "volume_key", "agyn.io/workload-id-2"} {
		if workload.IsReservedLabel(key) {
			t.Errorf("%q is reserved", key)
		}
	}
}
