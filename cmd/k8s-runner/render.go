package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/templates"
)

// placeholderID is the id of a rendered workload whose request has none: a
// random one would make the output another one each time.
const placeholderID = "00000000-0000-4000-8000-000000000000"

const renderHelp = `Show the manifests of a request, in the order in which a runner applies them,
without a cluster or a runner. It is the runner's own engine: the same request,
templates, catalog and settings give the same manifests.

The request is YAML in the fields of StartWorkloadRequest. Without a workload_id
it is rendered as ` + placeholderID + `, and stderr says so.

--templates DIR is the whole set: nothing shipped is added to it; what is in
DIR/layers is laid over it, or over the shipped ones if DIR has none. Settings come
from --config and the defaults, never from the environment.

Values of variables, inline files, passwords and all data of Secrets are masked
unless --show-secrets.

-o json is one List, which kubectl reads as well.

Exit code: 0, or 1 for every error, an invalid request among them; 2 for a wrong
command line.`

// renderFlags are those of render.
type renderFlags struct {
	offlineFlags
	file, templates string
	form            *choice
	showSecrets     bool
	explain         bool
}

func newRender() *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:     "render -f FILE",
		Short:   "Show the manifests of a request",
		Long:    renderHelp,
		GroupID: groupOffline,
		Example: `  k8s-runner render -f request.yaml
  k8s-runner render -f request.yaml --templates my-templates --config runner.yaml
  k8s-runner render -f - -o json < request.yaml | jq '.items[0].spec'`,
		Args: cobra.NoArgs,
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "request `FILE`; - is stdin")
	cmd.Flags().StringVar(&f.templates, "templates", "", "folder `DIR` of templates (default: the shipped ones)")
	cmd.Flags().BoolVar(&f.showSecrets, "show-secrets", false, "do not mask secret values")
	cmd.Flags().BoolVar(&f.explain, "explain", false, "say at each field which line of which template, of which layer, set it")
	f.form = outputFlag(cmd.Flags(), formYAML, formJSON)
	cmd.RunE = offline(func(cmd *cobra.Command, _ []string) error {
		switch {
		case f.file == "":
			return usage(cmd, errors.New("there is no --file"))
		case f.explain && f.form.value != formYAML:
			return usage(cmd, errors.New("--explain writes comments, which only YAML has"))
		}
		manifests, err := f.manifests(cmd.InOrStdin(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if f.explain {
			return printExplained(cmd.OutOrStdout(), manifests)
		}
		return printManifests(cmd.OutOrStdout(), f.form.value, manifests.All())
	})
	return cmd
}

// manifests renders the request; notes is told what was filled in.
func (f *renderFlags) manifests(stdin io.Reader, notes io.Writer) (*render.Manifests, error) {
	req, err := readRequest(f.file, stdin)
	if err != nil {
		return nil, err
	}
	if req.GetWorkloadId() == "" {
		req.WorkloadId = placeholderID
		if _, err := fmt.Fprintf(notes, "the request has no workload_id; this shows it as %s\n", placeholderID); err != nil {
			return nil, err
		}
	}
	suite, err := f.set()
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Options(suite))
	if err != nil {
		return nil, err
	}
	spec, plan, err := e.Plan(req)
	if err != nil {
		return nil, err
	}
	if !f.showSecrets {
		spec = spec.Masked()
	}
	rendered, err := e.Manifests(spec, plan)
	if err != nil {
		return nil, err
	}
	if !f.showSecrets {
		maskSecrets(rendered.All())
	}
	return rendered, nil
}

// set returns the templates to render with.
func (f *renderFlags) set() (golden.Suite, error) {
	if f.templates != "" {
		return f.open(f.templates)
	}
	files, err := templates.Shipped()
	if err != nil {
		return golden.Suite{}, err
	}
	return f.suite(files)
}

// maskSecrets replaces all data of Secrets, whatever a template put there. What
// is left can be read, and not be applied by mistake.
func maskSecrets(manifests []*unstructured.Unstructured) {
	for _, m := range manifests {
		if m.GetKind() != "Secret" {
			continue
		}
		for _, field := range [...]string{"data", "stringData"} {
			data, _ := m.Object[field].(map[string]any)
			for key := range data {
				data[key] = "(masked; --show-secrets shows it)"
			}
		}
	}
}

// printExplained writes a YAML stream with a comment at each field.
func printExplained(out io.Writer, manifests *render.Manifests) error {
	for i, m := range manifests.All() {
		doc, err := manifests.Explain(m)
		if err != nil {
			return err
		}
		if i > 0 {
			doc = append([]byte("---\n"), doc...)
		}
		if _, err := out.Write(doc); err != nil {
			return err
		}
	}
	return nil
}

// printManifests writes a YAML stream, or a List in JSON.
func printManifests(out io.Writer, form string, manifests []*unstructured.Unstructured) error {
	if form == formYAML {
		stream, err := golden.Stream(manifests)
		if err != nil {
			return err
		}
		_, err = out.Write(stream)
		return err
	}
	items := make([]any, len(manifests))
	for i, m := range manifests {
		items[i] = m.Object
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
