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
//	layers/        ConfigMaps of an operator, laid over the templates
//
// Adding a case means adding a folder with request.yaml and updating.
package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8srunner "github.com/agynio/k8s-runner"
	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/render"
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
	LayerFolder    = "layers"
)

// Namespace is where the workloads of golden cases would run.
const Namespace = "workloads"

// Suite is what cases are rendered with, but for what they bring themselves.
type Suite struct {
	// Templates are texts by file name.
	Templates map[string]string
	// Layers are an operator's, above the templates.
	Layers  []render.Layer
	Catalog *catalog.Catalog
	Config  config.Config
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

// ShippedCases returns the folder of the cases that the runner ships.
func ShippedCases() (fs.FS, error) {
	dir, err := fs.Sub(k8srunner.Cases, "testdata/cases")
	if err != nil {
		return nil, fmt.Errorf("opening the shipped cases: %w", err)
	}
	return dir, nil
}

// Cases returns the names of the folders of root, sorted, each of which is to be
// a case. A root that is not there has none.
func Cases(root fs.FS) ([]string, error) {
	folders, err := fs.ReadDir(root, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the cases: %w", err)
	}
	var names []string
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		if _, err := fs.Stat(root, path.Join(f.Name(), RequestFile)); err != nil {
			return nil, fmt.Errorf("%s is no case: it has no %s", f.Name(), RequestFile)
		}
		names = append(names, f.Name())
	}
	return names, nil
}

// Result is what a case renders to: one of its two texts is empty.
type Result struct {
	// Manifests is a YAML stream.
	Manifests string
	// Err is the error as expected.err spells it.
	Err string
	// Broken is true if Err is about the templates and not about the request.
	Broken bool
}

// Render renders the case called name of root. Its error is about reading the
// case; a request that is refused, or a template that fails, is a Result.
func (s Suite) Render(root fs.FS, name string) (Result, error) {
	c, err := s.Read(root, name)
	if err != nil {
		return Result{}, err
	}
	e, err := engine.New(c.Options)
	if err != nil {
		return failed(err), nil
	}
	_, manifests, err := e.Render(c.Request)
	if err != nil {
		return failed(err), nil
	}
	hideDigest(manifests.Pod)
	stream, err := Stream(manifests.All())
	return Result{Manifests: string(stream)}, err
}

func failed(err error) Result {
	aboutRequest := errors.As(err, new(*workload.Error))
	return Result{Err: errorText(err), Broken: !aboutRequest}
}

// hideDigest keeps a change of one template from changing every case.
func hideDigest(m *unstructured.Unstructured) {
	annotations := m.GetAnnotations()
	if _, there := annotations[workload.AnnotationTemplates]; there {
		annotations[workload.AnnotationTemplates] = "(digest of the templates)"
		m.SetAnnotations(annotations)
	}
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
