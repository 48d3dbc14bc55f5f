package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// Forms of output.
const (
	formTable = "table"
	formWide  = "wide"
	formJSON  = "json"
	formYAML  = "yaml"
)

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value string
	of    []string
}

// outputFlag adds -o; the first form is the default.
func outputFlag(flags *pflag.FlagSet, forms ...string) *choice {
	c := &choice{value: forms[0], of: forms}
	flags.VarP(c, "output", "o", "form of the output")
	return c
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.of, "|") }

func (c *choice) Set(value string) error {
	if !slices.Contains(c.of, value) {
		return fmt.Errorf("want one of %s", strings.Join(c.of, ", "))
	}
	c.value = value
	return nil
}

// table sets rows of cells one below the other, as kubectl does.
func table(rows ...[]string) string {
	var text strings.Builder // which takes everything, so that no write fails
	out := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		_, _ = fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	_ = out.Flush()
	return text.String()
}

// printable keeps text of others on its line: a line break or an escape
// sequence in it becomes spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// printAs writes value as JSON, two spaces a level, or as YAML.
func printAs(out io.Writer, form string, value json.RawMessage) error {
	if form == formYAML {
		text, err := yaml.JSONToYAML(value)
		if err != nil {
			return fmt.Errorf("formatting YAML: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	var text bytes.Buffer
	// protojson's own spaces differ from build to build by intent.
	if err := json.Indent(&text, value, "", "  "); err != nil {
		return fmt.Errorf("formatting JSON: %w", err)
	}
	text.WriteByte('\n')
	_, err := text.WriteTo(out)
	return err
}

// toJSON encodes m with the names of its .proto file, fields that are zero
// included.
func toJSON(m proto.Message) (json.RawMessage, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return text, nil
}

// listToJSON encodes a list.
func listToJSON[M proto.Message](list []M) (json.RawMessage, error) {
	items := make([]json.RawMessage, len(list))
	for i, m := range list {
		item, err := toJSON(m)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	return json.Marshal(items)
}
