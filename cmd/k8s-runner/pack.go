package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// maxConfigMap is how many bytes of data Kubernetes takes in a ConfigMap
// (MaxSecretSize in k8s.io/kubernetes/pkg/apis/core).
const maxConfigMap = 1 << 20

func newPack() *cobra.Command {
	var name, namespace string
	cmd := &cobra.Command{
		Use:   "pack DIR",
		Short: "Print the ConfigMap that holds a folder's templates",
		Long: `Print the ConfigMap that holds the templates in DIR, its *.yaml and *.tpl, once
they compile. The same templates give the same bytes. A running service that
watches the namespace tries it and then renders with it.

Apply it on the server's side: what 'kubectl apply' alone would remember in an
annotation can be too large.`,
		Example: `  k8s-runner templates pack my-templates --namespace workloads | kubectl apply --server-side -f -`,
		Args:    usageArgs(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&name, "name", "k8s-runner-templates", "`NAME` of the ConfigMap")
	cmd.Flags().StringVar(&namespace, "namespace", "", "its `NAMESPACE` (default: what kubectl is set to)")
	cmd.RunE = offline(func(cmd *cobra.Command, args []string) error {
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			return usage(cmd, fmt.Errorf("--name %q: %s", name, faults[0]))
		}
		if faults := validation.IsDNS1123Label(namespace); namespace != "" && len(faults) > 0 {
			return usage(cmd, fmt.Errorf("--namespace %q: %s", namespace, faults[0]))
		}
		files, err := templates.Folder(args[0])
		if err != nil {
			return err
		}
		if _, err := render.Compile(files); err != nil {
			return fmt.Errorf("compiling the templates: %w", err)
		}
		if err := fitting(files); err != nil {
			return err
		}
		text, err := golden.Stream([]*unstructured.Unstructured{configMap(name, namespace, files)})
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	})
	return cmd
}

// fitting refuses what Kubernetes takes in no ConfigMap.
func fitting(files map[string]string) error {
	size := 0
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		size += len(files[name])
		if faults := validation.IsConfigMapKey(name); len(faults) > 0 {
			problems = append(problems, fmt.Errorf("%s cannot be a key of a ConfigMap: %s", name, strings.Join(faults, "; ")))
		}
		if !utf8.ValidString(files[name]) {
			problems = append(problems, fmt.Errorf("%s is not UTF-8", name))
		}
	}
	if size > maxConfigMap {
		problems = append(problems, fmt.Errorf("the templates have %d bytes, and a ConfigMap holds %d", size, maxConfigMap))
	}
	return errors.Join(problems...)
}

func configMap(name, namespace string, files map[string]string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name, "labels": map[string]any{workload.LabelTemplates: workload.TemplateFiles}}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	data := make(map[string]any, len(files))
	for file, text := range files {
		data[file] = text
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}}
}
