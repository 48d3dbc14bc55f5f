package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// inspectsAtOnce bounds the calls of one ps.
const inspectsAtOnce = 8

func newPs() *cobra.Command {
	var all, quiet bool
	var filters []string
	cmd := &cobra.Command{
		Use:   "ps [flags]",
		Short: "List workloads",
		Long: `List workloads, the youngest first: those that run or, with --all, also those
that are starting or have ended.

STATUS is what a container waits for, how the main container ended (with its exit
code if that is not 0), or the phase of the Pod. READY counts the containers that
run.`,
		Example: `  k8s-runner ps
  k8s-runner ps -a --filter label=team=blue -o wide
  k8s-runner ps -aq
  k8s-runner ps -o json | jq -r '.[].containers[].image'`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "not only those that run")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only ids")
	cmd.Flags().StringArrayVar(&filters, "filter", nil, "only workloads with the label in `label=KEY=VALUE`; of several, all must match")
	form := outputFlag(cmd.Flags(), formTable, formWide, formJSON, formYAML)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, _ []string) error {
		labels, err := selector(filters)
		if err != nil {
			return usage(cmd, err)
		}
		found, err := c.FindWorkloadsByLabels(cmd.Context(), &runnerv1.FindWorkloadsByLabelsRequest{Labels: labels, All: all})
		if err != nil {
			return fmt.Errorf("listing workloads: %w", err)
		}
		if quiet {
			_, err := fmt.Fprint(cmd.OutOrStdout(), lines(found.GetTargetIds()))
			return err
		}
		workloads, err := c.inspectAll(cmd.Context(), found.GetTargetIds())
		if err != nil {
			return fmt.Errorf("listing workloads: %w", err)
		}
		if form.value == formTable || form.value == formWide {
			_, err := fmt.Fprint(cmd.OutOrStdout(), psTable(workloads, form.value == formWide, time.Now()))
			return err
		}
		list, err := listToJSON(workloads)
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), form.value, list)
	})
}

// selector reads filters of the form label=KEY=VALUE.
func selector(filters []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, f := range filters {
		kind, pair, _ := strings.Cut(f, "=")
		key, value, whole := strings.Cut(pair, "=")
		if kind != "label" || key == "" || !whole {
			return nil, fmt.Errorf("--filter %q is not label=KEY=VALUE", f)
		}
		if other, twice := labels[key]; twice && other != value {
			return nil, fmt.Errorf("--filter asks for two values of the label %q; no workload has both", key)
		}
		labels[key] = value
	}
	return labels, nil
}

func lines(ids []string) string {
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(id + "\n")
	}
	return text.String()
}

// inspectAll inspects workloads, several at once, and returns those that are
// still there, the youngest first.
func (c client) inspectAll(ctx context.Context, ids []string) ([]*runnerv1.InspectWorkloadResponse, error) {
	workloads := make([]*runnerv1.InspectWorkloadResponse, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inspectsAtOnce)
	for i, id := range ids {
		group.Go(func() error {
			w, err := c.InspectWorkload(ctx, &runnerv1.InspectWorkloadRequest{WorkloadId: id})
			if err != nil && exitCode(err) != exitNotFound {
				return err
			}
			workloads[i] = w
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return youngestFirst(workloads), nil
}

// youngestFirst sorts workloads and leaves out the nil ones.
func youngestFirst(workloads []*runnerv1.InspectWorkloadResponse) []*runnerv1.InspectWorkloadResponse {
	workloads = slices.DeleteFunc(workloads, func(w *runnerv1.InspectWorkloadResponse) bool { return w == nil })
	slices.SortStableFunc(workloads, func(a, b *runnerv1.InspectWorkloadResponse) int {
		return cmp.Compare(startOf(b), startOf(a))
	})
	return workloads
}

// startOf is when the main container started; if it has not, it will be the
// youngest.
func startOf(w *runnerv1.InspectWorkloadResponse) int64 {
	if at := (summary{w}).mainContainer().GetStartedAt(); at != nil {
		return at.AsTime().UnixNano()
	}
	return math.MaxInt64
}

func psTable(workloads []*runnerv1.InspectWorkloadResponse, wide bool, now time.Time) string {
	heads := []string{"ID", "IMAGE", "STATUS", "READY", "RESTARTS", "AGE"}
	if wide {
		heads = append(heads, "LABELS")
	}
	rows := [][]string{heads}
	for _, w := range workloads {
		s := summary{w}
		row := []string{
			w.GetId(), w.GetConfigImage(), s.status(), s.ready(),
			strconv.Itoa(int(s.restarts())), age(s.mainContainer(), now),
		}
		if wide {
			row = append(row, labelText(w.GetConfigLabels()))
		}
		rows = append(rows, row)
	}
	return table(rows...)
}

// labelText lists labels, without those that every workload has.
func labelText(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !workload.IsReservedLabel(key) {
			pairs = append(pairs, key+"="+labels[key])
		}
	}
	return cmp.Or(strings.Join(pairs, ","), "-")
}
