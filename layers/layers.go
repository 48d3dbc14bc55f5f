// Package layers turns an operator's ConfigMaps into what is laid over the shipped
// templates.
package layers

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/workload"
)

// Of turns ConfigMaps into layers, in the order of their names. Its errors start
// with the name of the ConfigMap at fault.
func Of(maps []*corev1.ConfigMap) ([]render.Layer, error) {
	maps = slices.Clone(maps)
	slices.SortFunc(maps, func(a, b *corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	layers := make([]render.Layer, 0, len(maps))
	for _, m := range maps {
		layer := render.Layer{Name: m.Name}
		switch kind := m.Labels[workload.LabelTemplates]; kind {
		case workload.TemplateFiles:
			layer.Files = m.Data
		case workload.TemplatePatches:
			layer.Patches = m.Data
		case workload.TemplateValues:
			values, err := valuesOf(m)
			if err != nil {
				return nil, err
			}
			layer.Values = values
		default:
			return nil, fmt.Errorf("%s: the label %s is %q and none of %s, %s, %s", m.Name, workload.LabelTemplates, kind,
				workload.TemplateValues, workload.TemplatePatches, workload.TemplateFiles)
		}
		for name := range m.Data {
			if layer.Values == nil && !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".tpl") {
				return nil, fmt.Errorf("%s/%s: the name of a template ends with .yaml or .tpl", m.Name, name)
			}
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// Read reads the ConfigMaps in the YAML files of dir, which need not be there.
// What is no ConfigMap with the label is refused: it would not count in a cluster
// either.
func Read(dir fs.FS) ([]render.Layer, error) {
	files, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the layers: %w", err)
	}
	var maps []*corev1.ConfigMap
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, fmt.Errorf("reading a layer: %w", err)
		}
		for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			m := &corev1.ConfigMap{}
			if err == nil {
				err = yaml.UnmarshalStrict(document, m)
			}
			if err != nil || m.Kind != "ConfigMap" || m.Name == "" || m.Labels[workload.LabelTemplates] == "" {
				return nil, fmt.Errorf("%s: not a ConfigMap with a name and the label %s", file, workload.LabelTemplates)
			}
			maps = append(maps, m)
		}
	}
	return Of(maps)
}

// valuesOf merges the keys of m, each of which is a YAML mapping.
func valuesOf(m *corev1.ConfigMap) (map[string]any, error) {
	values := map[string]any{}
	names := make([]string, 0, len(m.Data))
	for name := range m.Data {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var part map[string]any
		if err := yaml.UnmarshalStrict([]byte(m.Data[name]), &part); err != nil {
			return nil, valuesFault(m.Name+"/"+name, err)
		}
		render.Overlay(values, part)
	}
	return values, nil
}

// valuesFault says what is wrong with the YAML of a file, and in which line as far as
// the parser says so.
func valuesFault(file string, err error) error {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "unmarshal errors:\n  ")
	if rest, has := strings.CutPrefix(text, "line "); has {
		return fmt.Errorf("%s:%s", file, rest)
	}
	if strings.Contains(text, "cannot unmarshal") {
		text = "is no mapping of names to values"
	}
	return fmt.Errorf("%s: %s", file, text)
}
