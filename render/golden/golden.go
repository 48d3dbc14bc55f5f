// Package golden runs golden cases. A case is a folder:
//
//	request.yaml   a StartWorkloadRequest; its first comment says why the case exists
//	expected.yaml  the manifests, in the order in which they are applied; or
//	expected.err   the error, a line for each field at fault
//
// Adding a case means adding a folder with request.yaml and updating.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

// Files of a case.
const (
	RequestFile  = "request.yaml"
	ManifestFile = "expected.yaml"
	ErrorFile    = "expected.err"
)

// Namespace is where the workloads of golden cases would run.
const Namespace = "workloads"

// Cases returns the folders below root that are cases, sorted.
func Cases(root string) ([]string, error) {
	requests, err := filepath.Glob(filepath.Join(root, "*", RequestFile))
	if err != nil {
		return nil, fmt.Errorf("listing the cases of %s: %w", root, err)
	}
	if len(requests) == 0 {
		return nil, fmt.Errorf("no case below %s: a case is a folder with a %s", root, RequestFile)
	}
	for i, r := range requests {
		requests[i] = filepath.Dir(r)
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

// Render renders the case in folder dir with the templates of set. Its error
// is about reading the case; a request that is refused is a Result.
func Render(dir string, set *render.Set) (Result, error) {
	file := filepath.Join(dir, RequestFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return Result{}, fmt.Errorf("reading a case: %w", err)
	}
	if !bytes.HasPrefix(data, []byte("#")) {
		return Result{}, fmt.Errorf("%s: the first line must be a comment that says why the case exists", file)
	}
	req, err := request.Unmarshal(data)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", file, err)
	}
	spec, err := request.Parse(req)
	if err != nil {
		return Result{Err: errorText(err)}, nil
	}
	manifests, err := set.Render(spec, render.DefaultSettings(Namespace))
	if err != nil {
		return Result{Err: errorText(err)}, nil
	}
	hideDigest(manifests.Pod)
	stream, err := Stream(manifests.All())
	return Result{Manifests: string(stream)}, err
}

// Check compares r with what folder dir expects and returns the difference as
// lines that start with - (expected) and + (rendered), or "" if there is none.
func Check(dir string, r Result) (string, error) {
	var diffs []string
	for name, got := range r.files() {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading what a case expects: %w", err)
		}
		if diff := cmp.Diff(lines(string(want)), lines(got)); diff != "" {
			diffs = append(diffs, name+":\n"+diff)
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
