package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

// TestDescribeTemplates checks what users read of each kind of status.
func TestDescribeTemplates(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-d)) }
	rejection := &k8srunnerv1.TemplatesRejection{
		At: before(2 * time.Minute), ConfigMaps: []string{"a", "b"}, Findings: []string{"a/pod.yaml:1: x\x1b[2J", "b: y"},
	}
	next := `Mend the ConfigMaps, or undo the edit; the runner sees it by itself. 'k8s-runner templates lint DIR'
finds such faults before an edit, with the ConfigMaps as files in DIR/layers.
`
	for name, c := range map[string]struct {
		status *k8srunnerv1.TemplatesStatus
		want   string
	}{
		"as shipped": {
			&k8srunnerv1.TemplatesStatus{Served: true, Digest: "0123456789abcdef", LoadedAt: before(-time.Second)},
			`Digest:   0123456789abcdef
Loaded:   0s ago (2026-01-02T03:04:06Z)

No layers: the shipped templates are served as they are.
`,
		},
		"an edit is refused": {
			&k8srunnerv1.TemplatesStatus{
				Served: true, Digest: "0123456789abcdef", LoadedAt: before(49 * time.Hour), Rejection: rejection,
				Layers: []*k8srunnerv1.TemplateLayer{{Name: "a", Kind: "files", Digest: "00000000000000aa", ResourceVersion: "1"}},
			},
			`Digest:   0123456789abcdef
Loaded:   2d1h ago (2025-12-31T02:04:05Z)

LAYER   KIND    DIGEST             RESOURCE VERSION
a       files   00000000000000aa   1

Rejected:   2m ago (2026-01-02T03:02:05Z)
About:      a, b
  a/pod.yaml:1: x [2J
  b: y

This edit does not count: workloads are made by the set above.
` + next,
		},
		"a needed one is deleted": {
			&k8srunnerv1.TemplatesStatus{Rejection: &k8srunnerv1.TemplatesRejection{At: before(0), Findings: []string{"pod.yaml:1: x"}}},
			`No templates are served: none were good since the runner started. Every start of a workload
is refused (templates_rejected); what runs goes on.

Rejected:   0s ago (2026-01-02T03:04:05Z)
About:      what was taken away
  pod.yaml:1: x

` + next,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describeTemplates(c.status, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
