package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show how a running runner is",
		Long: `Show what a running runner knows of itself: whether it is ready and, if not, why;
the cluster, and how long ago the API server last spoke to each of its caches (it
does so about once a minute); the templates and the catalog; the platform's gateway
and the overlay, if it has them; and the last warnings and errors of its log.

It asks one runner, and is answered from memory. The exit code is 0 if the runner is
ready, and 1 if it is not. The fields of json and yaml are those of
GetStatusResponse in operator.proto.`,
		Example: `  k8s-runner status
  k8s-runner status --address runner:50051 -o json | jq .gateway`,
		Args: usageArgs(cobra.NoArgs),
	}
	form := outputFlag(cmd.Flags(), formTable, formJSON, formYAML)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, _ []string) error {
		found, err := c.GetStatus(cmd.Context(), &k8srunnerv1.GetStatusRequest{})
		if status.Code(err) == codes.Unimplemented {
			return fmt.Errorf("%w\nA runner that cannot tell its status is older than this command; upgrade it", err)
		}
		if err != nil {
			return fmt.Errorf("asking for the status: %w", err)
		}
		if err := printStatus(cmd.OutOrStdout(), form.value, found, func() string { return describeStatus(found, time.Now()) }); err != nil {
			return err
		}
		if n := len(found.GetProcess().GetNotReady()); n > 0 {
			return fmt.Errorf("the runner is not ready: it lacks %s", counted(n, "thing"))
		}
		return nil
	})
}

// printStatus prints a status, for people as describe has it.
func printStatus(out io.Writer, form string, status proto.Message, describe func() string) error {
	if form == formTable {
		_, err := io.WriteString(out, describe())
		return err
	}
	value, err := toJSON(status)
	if err != nil {
		return err
	}
	return printAs(out, form, value)
}

// describeStatus sets a status as text for people.
func describeStatus(s *k8srunnerv1.GetStatusResponse, now time.Time) string {
	p := s.GetProcess()
	rows := [][]string{
		{"Version:", p.GetVersion()},
		{"Started:", ago(p.GetStartedAt(), now)},
	}
	rows = append(rows, listed("Ready:", "yes", prefixed("no: ", p.GetNotReady()))...)
	rows = append(rows, kubernetesRows(s.GetKubernetes(), now)...)
	rows = append(rows, []string{"Templates:", templatesLine(s.GetTemplates(), now)}, []string{"Catalog:", catalogLine(s.GetCatalog())})
	rows = append(rows, platformRows(s, now)...)
	var errors []string
	for _, e := range p.GetErrors() {
		errors = append(errors, fmt.Sprintf("%s %s: %s", ago(e.GetAt(), now), e.GetLevel(), printable(e.GetMessage())))
	}
	return table(append(rows, listed("Last errors:", "none", errors)...)...)
}

func kubernetesRows(k *k8srunnerv1.KubernetesStatus, now time.Time) [][]string {
	reach := "the API server answers"
	if k.GetUnreachable() != "" {
		reach = "the API server is " + printable(k.GetUnreachable())
	}
	var caches []string
	for _, c := range k.GetCaches() {
		caches = append(caches, c.GetResource()+" heard "+ago(c.GetHeardAt(), now))
	}
	rows := [][]string{{"Kubernetes:", fmt.Sprintf("namespace %s, %s; %s", k.GetNamespace(), counted(int(k.GetWorkloads()), "workload"), reach)}}
	return append(rows, listed("Caches:", "none is read yet", caches)...)
}

func templatesLine(t *k8srunnerv1.TemplatesStatus, now time.Time) string {
	line := "none are good; see 'k8s-runner templates status'"
	if t.GetServed() {
		line = fmt.Sprintf("%s, %s, loaded %s", t.GetDigest(), counted(len(t.GetLayers()), "layer"), ago(t.GetLoadedAt(), now))
	}
	if t.GetRejection() != nil {
		line += "; an edit was rejected, see 'k8s-runner templates status'"
	}
	return line
}

func catalogLine(c *k8srunnerv1.CatalogStatus) string {
	capabilities := "no capabilities"
	if len(c.GetCapabilities()) > 0 {
		capabilities = "capabilities " + strings.Join(c.GetCapabilities(), ", ")
	}
	source := "the shipped one"
	if c.GetSource() != "" {
		source = c.GetSource()
	}
	return fmt.Sprintf("%s: %s, %s, %s", source, counted(int(c.GetFlavors()), "flavor"), counted(int(c.GetStorageClasses()), "storage class"), capabilities)
}

func platformRows(s *k8srunnerv1.GetStatusResponse, now time.Time) [][]string {
	g := s.GetGateway()
	if g == nil {
		return [][]string{{"Gateway:", "none: this runner stands alone"}}
	}
	reach := "answers"
	if g.GetAwaySince() != nil {
		reach = "away since " + ago(g.GetAwaySince(), now) + ": " + printable(g.GetAway())
	}
	told := "the platform knows every state"
	if g.GetUnsent() > 0 {
		told = fmt.Sprintf("%s to tell, the oldest of %s", counted(int(g.GetUnsent()), "state"), ago(g.GetOldestUnsentAt(), now))
	}
	id := g.GetRunnerId()
	if id == "" {
		id = "this runner"
	}
	rows := [][]string{
		{"Gateway:", g.GetAddress() + " " + reach},
		{"Enrolled:", id + " " + ago(g.GetEnrolledAt(), now) + ", catalog told " + ago(g.GetCatalogReportedAt(), now)},
		{"States:", told},
	}
	if o := s.GetOverlay(); o != nil {
		bound := "callers reach " + o.GetService()
		if !o.GetReady() {
			bound = "callers do not reach " + o.GetService() + ": " + printable(o.GetReason())
		}
		rows = append(rows, []string{"Overlay:", bound})
	}
	return rows
}

// listed sets several lines under one heading, or says that there are none.
func listed(heading, none string, lines []string) [][]string {
	if len(lines) == 0 {
		return [][]string{{heading, none}}
	}
	rows := make([][]string, len(lines))
	for i, line := range lines {
		rows[i] = []string{"", line}
	}
	rows[0][0] = heading
	return rows
}

func prefixed(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = prefix + printable(line)
	}
	return out
}
