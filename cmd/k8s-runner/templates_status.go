package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/duration"

	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

func newTemplatesStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show which layers a running runner serves, and why an edit does not count",
		Long: `Show what a running runner makes of the ConfigMaps with the label
agyn.io/templates: the layers that it renders with, in the order in which they
count, and the last edit if it was refused, with every finding. An edit counts a
moment after it is made; until all of it is good, the set before it stays.

DIGEST identifies content. That of the whole set is also in the annotation
agyn.io/templates-digest of each Pod that it made, so that

  kubectl get pods -o custom-columns='POD:.metadata.name,SET:.metadata.annotations.agyn\.io/templates-digest'

shows which Pods are of an older one. RESOURCE VERSION is that of the ConfigMap
when the set was loaded. Without layers the shipped templates are served.

It asks one runner; replicas see an edit within moments of each other. The exit
code is 0 whatever the status is. The fields of json and yaml are those of
TemplatesStatus in operator.proto.`,
		Example: `  k8s-runner templates status
  k8s-runner templates status --address runner:50051
  k8s-runner templates status -o json | jq -e '.served and .rejection == null'`,
		Args: usageArgs(cobra.NoArgs),
	}
	form := outputFlag(cmd.Flags(), formTable, formJSON, formYAML)
	clientCommand(cmd, func(cmd *cobra.Command, c client, _ []string) error {
		found, err := c.GetStatus(cmd.Context(), &k8srunnerv1.GetStatusRequest{})
		if status.Code(err) == codes.Unimplemented {
			return fmt.Errorf("%w\nA runner that cannot tell its status is older than this command. Upgrade it, or see the Events of its ConfigMaps:\n"+
				"kubectl describe configmaps -l agyn.io/templates", err)
		}
		if err != nil {
			return fmt.Errorf("asking for the status: %w", err)
		}
		templates := found.GetTemplates()
		return printStatus(cmd.OutOrStdout(), form.value, templates, func() string { return describeTemplates(templates, time.Now()) })
	})
	cmd.GroupID = "" // the groups are those of the root
	return cmd
}

// describeTemplates sets a status as text for people.
func describeTemplates(s *k8srunnerv1.TemplatesStatus, now time.Time) string {
	var text strings.Builder
	if s.GetServed() {
		text.WriteString(table([]string{"Digest:", s.GetDigest()}, []string{"Loaded:", ago(s.GetLoadedAt(), now)}))
		text.WriteString("\n" + layersTable(s.GetLayers()))
	} else {
		text.WriteString("No templates are served: none were good since the runner started. Every start of a workload\n" +
			"is refused (templates_rejected); what runs goes on.\n")
	}
	if s.GetRejection() != nil {
		text.WriteString("\n" + describeRejection(s, now))
	}
	return text.String()
}

func layersTable(layers []*k8srunnerv1.TemplateLayer) string {
	if len(layers) == 0 {
		return "No layers: the shipped templates are served as they are.\n"
	}
	rows := [][]string{{"LAYER", "KIND", "DIGEST", "RESOURCE VERSION"}}
	for _, l := range layers {
		rows = append(rows, []string{l.GetName(), l.GetKind(), l.GetDigest(), l.GetResourceVersion()})
	}
	return table(rows...)
}

// describeRejection says what is wrong, and what to do next.
func describeRejection(s *k8srunnerv1.TemplatesStatus, now time.Time) string {
	r := s.GetRejection()
	var text strings.Builder
	about := cmp.Or(strings.Join(r.GetConfigMaps(), ", "), "what was taken away")
	text.WriteString(table([]string{"Rejected:", ago(r.GetAt(), now)}, []string{"About:", about}))
	for _, f := range r.GetFindings() {
		text.WriteString("  " + printable(f) + "\n")
	}
	if s.GetServed() {
		text.WriteString("\nThis edit does not count: workloads are made by the set above.")
	}
	text.WriteString("\nMend the ConfigMaps, or undo the edit; the runner sees it by itself. 'k8s-runner templates lint DIR'\n" +
		"finds such faults before an edit, with the ConfigMaps as files in DIR/layers.\n")
	return text.String()
}

// ago is how long ago something was, and when.
func ago(at *timestamppb.Timestamp, now time.Time) string {
	if at == nil {
		return "-"
	}
	t := at.AsTime()
	return fmt.Sprintf("%s ago (%s)", duration.HumanDuration(max(0, now.Sub(t))), t.Format(time.RFC3339))
}
