package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/workload"
)

func newCatalog() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "catalog",
		Short:   "Work on catalog files",
		GroupID: groupOffline,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCatalogCheck())
	return cmd
}

func newCatalogCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Find every fault of a catalog file",
		Long: `Find every fault of a catalog file, each with its line, and exit with 4; or show
what the file offers. It needs neither a cluster nor a runner.`,
		Example: `  k8s-runner catalog check catalog.yaml`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readCatalog(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), catalogTable(c))
			return err
		},
	}
}

// readCatalog reads the catalog at path. Its error has a line for each fault.
func readCatalog(path string) (*catalog.Catalog, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	c, faults := catalog.Parse(data)
	if len(faults) == 0 {
		return c, nil
	}
	var text strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&text, "\n%s:%s", path, f)
	}
	return nil, workload.Errorf(workload.InvalidArgument, "invalid_catalog", "%d faults:%s", len(faults), text.String())
}

func catalogTable(c *catalog.Catalog) string {
	rows := [][]string{{"KIND", "NAME", "", "IS"}}
	for _, f := range c.Flavors {
		r := f.Resources
		rows = append(rows, []string{"flavor", f.Name, marks(f.Default, f.Deprecated), fmt.Sprintf("cpu %s-%s, memory %s-%s",
			orDash(r.RequestsCPU), orDash(r.LimitsCPU), orDash(r.RequestsMemory), orDash(r.LimitsMemory))})
	}
	for _, s := range c.StorageClasses {
		is := "storage class " + s.ClassName
		if s.ClassName == "" {
			is = "the cluster's default"
		}
		rows = append(rows, []string{"storage class", s.Name, marks(s.Default, s.Deprecated), is})
	}
	for _, name := range c.Capabilities {
		rows = append(rows, []string{"capability", name, "", ""})
	}
	return table(rows...)
}

func marks(isDefault, deprecated bool) string {
	var out []string
	if isDefault {
		out = append(out, "default")
	}
	if deprecated {
		out = append(out, "deprecated")
	}
	return strings.Join(out, ",")
}

func orDash(s string) string {
	if s == "" {
		return "?"
	}
	return s
}
