package request_test

import (
	"strings"
	"testing"
)

// TestClaims has two volumes of one claim, which is made in one way.
func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		want          string
	}{
		"the same":         {`persistent_name: c, size: 1Gi, storage_class: fast, labels: {a: b}`, `persistent_name: c, size: 1Gi, storage_class: fast, labels: {a: b}`, ""},
		"other properties": {`persistent_name: c, additional_properties: {a: b}`, `persistent_name: c`, ""},
		"another claim":    {`persistent_name: c, size: 1Gi`, `persistent_name: d, size: 2Gi`, ""},
		"another size":     {`persistent_name: c, size: 1Gi`, `persistent_name: c, size: 2Gi`, "conflicting_claim volumes[1].persistent_name"},
		"no size":          {`persistent_name: c, size: 1Gi`, `persistent_name: c`, "conflicting_claim volumes[1].persistent_name"},
		"another class":    {`persistent_name: c, storage_class: a`, `persistent_name: c, storage_class: b`, "conflicting_claim volumes[1].persistent_name"},
		"another label":    {`persistent_name: c, labels: {volume_key: a}`, `persistent_name: c, labels: {volume_key: b}`, "conflicting_claim volumes[1].persistent_name"},
		"by the own name":  {`persistent_name: b, size: 1Gi`, `size: 2Gi`, "conflicting_claim volumes[1].persistent_name"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			wantFaults(t, `{main: {image: a}, volumes: [{name: a, kind: 2, `+c.first+`}, {name: b, kind: 2, `+c.second+`}]}`, want...)
		})
	}
	t.Run("an ephemeral one of that name", func(t *testing.T) {
		wantFaults(t, `{main: {image: a}, volumes: [{name: a, kind: 2, persistent_name: c, size: 1Gi}, {name: b, kind: 1, persistent_name: c, size: 2Gi}]}`)
	})
	t.Run("the third one", func(t *testing.T) {
		wantFaults(t, `{main: {image: a}, volumes: [{name: a, kind: 2, persistent_name: c}, {name: b, kind: 2, persistent_name: c}, {name: d, kind: 2, persistent_name: c, size: 2Gi}]}`,
			"conflicting_claim volumes[2].persistent_name")
	})
}

// TestClaimLabels are those of a claim alone: an ephemeral volume has no object
// that could carry any.
func TestClaimLabels(t *testing.T) {
	const labels = `labels: {volume_key: v-1, agyn.io/workload-id: 00000000-0000-4000-8000-00000000000a, agyn.dev/managed-by: me, "a b": x, long: ` + "%s" + `}`
	text := strings.Replace(labels, "%s", strings.Repeat("a", 64), 1)
	const id = `workload_id: 00000000-0000-4000-8000-00000000000a, main: {image: a}`
	wantFaults(t, `{`+id+`, volumes: [{name: a, kind: 2, `+text+`}]}`,
		"reserved_label volumes[0].labels[agyn.dev/managed-by]", "invalid_label volumes[0].labels[a b]", "invalid_label volumes[0].labels[long]")
	wantFaults(t, `{`+id+`, volumes: [{name: a, kind: 1, `+text+`}]}`)
}

func TestClaimNames(t *testing.T) {
	for claim, valid := range map[string]bool{
		"a": true, "a.b-c": true, strings.Repeat("a", 253): true,
		"A": false, "a_b": false, "a/b": false, "-a": false, "a.": false, "a b": false, strings.Repeat("a", 254): false,
	} {
		var want []string
		if !valid {
			want = []string{"invalid_claim_name volumes[0].persistent_name"}
		}
		wantFaults(t, `{main: {image: a}, volumes: [{name: v, kind: 2, persistent_name: "`+claim+`"}]}`, want...)
	}
}
