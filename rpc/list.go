package rpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// ListWorkloads lists the workloads that carry a workload_key label, sorted by
// Pod name.
func (s *Server) ListWorkloads(context.Context, *runnerv1.ListWorkloadsRequest) (*runnerv1.ListWorkloadsResponse, error) {
	out := &runnerv1.ListWorkloadsResponse{}
	for _, state := range s.sorted(nil) {
		if key, ok := state.Labels[workload.LabelWorkloadKey]; ok {
			out.Workloads = append(out.Workloads, &runnerv1.WorkloadListItem{InstanceId: state.PodName, WorkloadKey: key})
		}
	}
	return out, nil
}

// FindWorkloadsByLabels returns the ids, sorted, of the workloads with all
// given labels; of those that run, unless all are asked for.
func (s *Server) FindWorkloadsByLabels(_ context.Context, req *runnerv1.FindWorkloadsByLabelsRequest) (*runnerv1.FindWorkloadsByLabelsResponse, error) {
	if err := checkSelector(req.GetLabels()); err != nil {
		return nil, err
	}
	out := &runnerv1.FindWorkloadsByLabelsResponse{}
	for _, state := range s.sorted(req.GetLabels()) {
		if req.GetAll() || state.Phase == workload.PhaseRunning {
			out.TargetIds = append(out.TargetIds, state.ID)
		}
	}
	return out, nil
}

func (s *Server) sorted(with map[string]string) []*workload.State {
	states := s.workloads.List(with)
	slices.SortFunc(states, func(a, b *workload.State) int { return cmp.Compare(a.PodName, b.PodName) })
	return states
}

// checkSelector refuses pairs that no label can be, which would find nothing
// without a word.
func checkSelector(labels map[string]string) error {
	var faults []workload.Violation
	for key, value := range labels {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			faults = append(faults, workload.Violation{
				Field: fmt.Sprintf("labels[%s]", key), Token: "invalid_selector", Message: fmt.Sprintf("%q=%q is no label", key, value),
			})
		}
	}
	slices.SortFunc(faults, func(a, b workload.Violation) int { return cmp.Compare(a.Field, b.Field) })
	return workload.Invalid(faults)
}
