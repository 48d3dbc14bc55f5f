// Package golden runs golden cases. A case is a folder:
//
//	request.yaml   a StartWorkloadRequest; its first comment says why the case exists
//	expected.yaml  the manifests, in the order in which they are applied; or
//	expected.err   the error, a line for each field at fault
//
// and, where it needs other ones than the suite has:
//
//	config.yaml    settings, in the form of the runner's file
//	catalog.yaml   the catalog
//	templates/     templates that replace those of the same name, or are added
//
// Adding a case means adding a folder with request.yaml and updating.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	k8srunner "github.com/agynio/k8s-runner"
	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// Files of a case.
const (
	RequestFile    = "request.yaml"
	ManifestFile   = "expected.yaml"
	ErrorFile      = "expected.err"
	ConfigFile     = "config.yaml"
	CatalogFile    = "catalog.yaml"
	TemplateFolder = "templates"
)

// Namespace is where the workloads of golden cases would run.
const Namespace = "workloads"

// Suite is what cases are rendered with, but for what they bring themselves.
type Suite struct {
	// Templates are texts by file name.
	Templates map[string]string
	Catalog   *catalog.Catalog
	Config    config.Config
}

// Shipped returns the suite of the shipped templates and catalog and of the
// settings that nobody has changed.
func Shipped() (Suite, error) {
	files, err := templates.Shipped()
	if err != nil {
		return Suite{}, err
	}
	offered, faults := catalog.Parse(k8srunner.Catalog)
	if len(faults) > 0 {
		return Suite{}, fmt.Errorf("the shipped catalog: %s", faults[0])
	}
	settings, err := config.Load(config.Sources{Namespace: Namespace})
	return Suite{Templates: files, Catalog: offered, Config: settings}, err
}

// Cases returns the names of the folders of root that are cases, sorted.
func Cases(root fs.FS) ([]string, error) {
	requests, err := fs.Glob(root, "*/"+RequestFile)
	if err != nil {
		return nil, fmt.Errorf("listing the cases: %w", err)
	}
	for i, r := range requests {
		requests[i] = path.Dir(r)
	}
	return requests, nil
}

// Result is what a case renders to: one of its two texts is empty.
type Result struct {
	// Manifests is a YAML stream.
	Manifests string
	// Err is the error as expected.err spells it.
	Err string
}

// Render renders the case called name of root. Its error is about reading the
// case; a request that is refused, or a template that fails, is a Result.
func (s Suite) Render(root fs.FS, name string) (Result, error) {
	dir, err := fs.Sub(root, name)
	if err != nil {
		return Result{}, fmt.Errorf("case %s: %w", name, err)
	}
	data, err := fs.ReadFile(dir, RequestFile)
	if err != nil {
		return Result{}, fmt.Errorf("case %s: %w", name, err)
	}
	if !bytes.HasPrefix(data, []byte("#")) {
		return Result{}, fmt.Errorf("case %s: the first line of %s must be a comment that says why the case exists", name, RequestFile)
	}
	req, err := request.Unmarshal(data)
	if err != nil {
		return Result{}, fmt.Errorf("case %s: %s: %w", name, RequestFile, err)
	}
	if req.GetWorkloadId() == "" {
		return Result{}, fmt.Errorf("case %s: %s needs a workload_id, or it would render differently each time", name, RequestFile)
	}
	options, err := s.options(dir)
	if err != nil {
		return Result{}, fmt.Errorf("case %s: %w", name, err)
	}
	e, err := engine.New(options)
	if err != nil {
		return Result{Err: errorText(err)}, nil
	}
	_, manifests, err := e.Render(req)
	if err != nil {
		return Result{Err: errorText(err)}, nil
	}
	hideDigest(manifests.Pod)
	stream, err := Stream(manifests.All())
	return Result{Manifests: string(stream)}, err
}

// options are those of the suite, but for what the case in dir brings.
func (s Suite) options(dir fs.FS) (engine.Options, error) {
	o := engine.Options{Templates: maps.Clone(s.Templates), Catalog: s.Catalog, Config: s.Config}
	if data, err := fs.ReadFile(dir, ConfigFile); err == nil {
		if o.Config, err = config.Load(config.Sources{Text: data, Name: ConfigFile, Namespace: Namespace}); err != nil {
			return o, err
		}
	}
	if data, err := fs.ReadFile(dir, CatalogFile); err == nil {
		var faults []catalog.Fault
		if o.Catalog, faults = catalog.Parse(data); len(faults) > 0 {
			return o, fmt.Errorf("%s:%s", CatalogFile, faults[0])
		}
	}
	files, err := fs.Glob(dir, TemplateFolder+"/*")
	if err != nil {
		return o, err
	}
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			return o, err
		}
		o.Templates[path.Base(file)] = string(data)
	}
	return o, nil
}

// Check compares r with what the case called name of root expects and returns
// the difference as lines that start with - (expected) and + (rendered), or ""
// if there is none.
func Check(root fs.FS, name string, r Result) (string, error) {
	var diffs []string
	files := r.files()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		want, err := fs.ReadFile(root, path.Join(name, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading what a case expects: %w", err)
		}
		if diff := cmp.Diff(lines(string(want)), lines(files[file])); diff != "" {
			diffs = append(diffs, file+":\n"+diff)
		}
	}
	return strings.Join(diffs, "\n"), nil
}

// Update makes r what folder dir expects.
func Update(dir string, r Result) error {
	for name, text := range r.files() {
		file := filepath.Join(dir, name)
		if text == "" {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("updating a case: %w", err)
			}
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // not secret
			return fmt.Errorf("updating a case: %w", err)
		}
	}
	return nil
}

// Stream is manifests as a stream of YAML documents, keys sorted.
func Stream(manifests []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for i, m := range manifests {
		if i > 0 {
			out.WriteString("---\n")
		}
		doc, err := document(m.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", m.GetKind(), m.GetName(), err)
		}
		out.Write(doc)
	}
	return out.Bytes(), nil
}

// document is obj as YAML or, where YAML does not bring it back unchanged, as
// JSON, which is YAML as well. U+0085 is such a case: a line break that the
// writer does not escape.
func document(obj any) ([]byte, error) {
	asJSON, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	doc, err := yaml.JSONToYAML(asJSON)
	if err != nil {
		return nil, err
	}
	if back, err := yaml.YAMLToJSON(doc); err == nil && bytes.Equal(back, asJSON) {
		return doc, nil
	}
	doc, err = json.MarshalIndent(obj, "", "  ")
	return append(bytes.ReplaceAll(doc, []byte("\u0085"), []byte(`\u0085`)), '\n'), err
}

// hideDigest keeps a change of one template from changing every case.
func hideDigest(m *unstructured.Unstructured) {
	annotations := m.GetAnnotations()
	if _, there := annotations[workload.AnnotationTemplates]; there {
		annotations[workload.AnnotationTemplates] = "(digest of the templates)"
		m.SetAnnotations(annotations)
	}
}

func (r Result) files() map[string]string {
	return map[string]string{ManifestFile: r.Manifests, ErrorFile: r.Err}
}

func errorText(err error) string {
	var e *workload.Error
	if !errors.As(err, &e) {
		return err.Error() + "\n"
	}
	if len(e.Violations) == 0 {
		return e.Error() + "\n"
	}
	var out strings.Builder
	for _, v := range e.Violations {
		fmt.Fprintf(&out, "%s\t%s\t%s\n", v.Token, v.Field, v.Message)
	}
	return out.String()
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
