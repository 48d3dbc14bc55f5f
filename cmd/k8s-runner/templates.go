package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/pod-security-admission/api"

	"github.com/agynio/k8s-runner/lint"
)

func newTemplates() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "templates",
		Short: "Work on templates and layers: export, test, lint, diff, pack, status",
		Long: `Work on a folder of templates of your own, without a cluster:

  export   write the shipped templates, their contract and golden cases
  test     compare the golden cases with what the templates render
  lint     render all that a catalog offers, and check the Pods' security level
  diff     show what they change against the shipped ones
  pack     print the ConfigMap that holds the templates

and see what a running runner makes of the ConfigMaps in its cluster:

  status   show the layers that count, and why an edit does not

Templates are the *.yaml and *.tpl of the folder; they are the whole set: nothing
shipped is added. What is laid over them, the ConfigMaps that a running service
reads, is in layers/; a folder that has layers needs no templates and changes the
shipped ones. Golden cases are in cases/. docs/customising.md and docs/golden.md
show the workflow.

Exit code: 0, or 1 for every finding and error, 2 for a wrong command line; those
of status are a client's, see 'k8s-runner exit-codes'.`,
		GroupID:                    groupOffline,
		SuggestionsMinimumDistance: 2,
		Args:                       unknownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExport(), newGolden(), newLint(), newDiff(), newPack(), newTemplatesStatus())
	return cmd
}

func newLint() *cobra.Command {
	var f offlineFlags
	level := &choice{value: string(api.LevelBaseline), of: []string{string(api.LevelPrivileged), string(api.LevelBaseline), string(api.LevelRestricted)}}
	cmd := &cobra.Command{
		Use:   "lint DIR",
		Short: "Find what is wrong with templates",
		Long: `Find what is wrong with the templates in DIR, a line each: file:line: message.

It renders a request for each flavor, storage class and capability of the
catalog, the shipped golden cases and those in DIR/cases, and decodes what comes
out as strictly as Kubernetes does. docker is tried in the implementation of
--config, or in all of them. A name that both a template and one of these
requests have is a finding, and so is a Pod that needs more than the Pod Security
level --level. What a request asks for itself is not held against the templates:
docker, Linux capabilities. To reach restricted, --config needs
security: {profile: restricted}.

A template that makes nothing for any request is a warning on stderr.`,
		Example: `  k8s-runner templates lint my-templates
  k8s-runner templates lint my-templates --catalog catalog.yaml --config runner.yaml --level restricted`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: offline(func(cmd *cobra.Command, args []string) error {
			suite, err := f.open(args[0])
			if err != nil {
				return err
			}
			report, err := lint.Run(lint.Options{
				Suite: suite, Cases: os.DirFS(filepath.Join(args[0], lint.CaseFolder)), Level: api.Level(level.value),
			})
			if err != nil {
				return err
			}
			return printReport(cmd, args[0], report)
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().Var(level, "level", "Pod Security `LEVEL` that must admit the Pods: privileged, baseline or restricted")
	return cmd
}

func printReport(cmd *cobra.Command, dir string, r lint.Report) error {
	for _, name := range r.Idle {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s makes nothing for any of the requests\n", filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, f := range r.Findings {
		f.File = filepath.Join(dir, f.File)
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), printable(f.String())); err != nil {
			return err
		}
	}
	if len(r.Findings) > 0 {
		return fmt.Errorf("%s: %s", dir, counted(len(r.Findings), "finding"))
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "ok: %s rendered; their Pods are %s, apart from docker and Linux capabilities that requests ask for\n",
		counted(r.Requests, "request"), r.Level)
	return err
}
