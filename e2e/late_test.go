//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// errLate: a change that others made was not shown in time.
var errLate = errors.New("a change shows late")

const (
	// lateAfter is much longer than a watch takes, and soon shorter than the
	// pauses between the lists of a cache that may not watch; a set of templates
	// is tried before it counts.
	lateAfter          = 4 * time.Second
	templatesLateAfter = 12 * time.Second
)

// late makes changes, and is errLate if one of them is not shown in time.
func late(limit time.Duration, change func(n int), shown func(n int) bool) error {
	for n := range 8 {
		change(n)
		for begin := time.Now(); !shown(n); time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > limit {
				return fmt.Errorf("%w: it was the %d.", errLate, n+1)
			}
		}
	}
	return nil
}

func label(key string, n int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"labels":{%q:"v%d"}}}`, key, n)
}

func showsPods(t *testing.T, r *runner, ns *namespace) error {
	id := r.sleeping(t)
	return late(lateAfter, func(n int) {
		if _, err := suite.admin.CoreV1().Pods(ns.name).Patch(t.Context(), "workload-"+id, types.MergePatchType, label("late", n), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}, func(n int) bool {
		answer, err := r.GetWorkloadLabels(t.Context(), &runnerv1.GetWorkloadLabelsRequest{WorkloadId: id})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetLabels()["late"] == fmt.Sprintf("v%d", n)
	})
}

func showsClaims(t *testing.T, r *runner, ns *namespace) error {
	name := "claim-" + newID()
	newClaim(t, ns.name, name, "v")
	return late(lateAfter, func(n int) {
		if _, err := suite.admin.CoreV1().PersistentVolumeClaims(ns.name).Patch(t.Context(), name, types.MergePatchType, label("volume_key", n), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}, func(n int) bool {
		list, err := r.ListVolumes(t.Context(), &runnerv1.ListVolumesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list.GetVolumes() {
			if v.GetInstanceId() == name {
				return v.GetVolumeKey() == fmt.Sprintf("v%d", n)
			}
		}
		return false
	})
}

func showsTemplates(t *testing.T, r *runner, ns *namespace) error {
	tried := func() (lines string) {
		_, text := r.get(t, "/metrics")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "k8s_runner_templates_edits_total") {
				lines += line
			}
		}
		return lines
	}
	before := ""
	return late(templatesLateAfter, func(n int) {
		before = tried()
		ns.lay(t, "late", "values", map[string]string{"values.yaml": fmt.Sprintf("x: v%d\n", n)})
	}, func(int) bool { return tried() != before })
}
