package golden

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/layers"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
)

// Case is a case that was read.
type Case struct {
	Request *runnerv1.StartWorkloadRequest
	// Options are those of the suite, but for what the case brings.
	Options engine.Options
	// Own are the names of the templates that the case brings.
	Own []string
	// Layered is true if the case brings layers.
	Layered bool
	// Configured is true if the case brings settings.
	Configured bool
	// Refused is true if the case expects an error.
	Refused bool
}

// Read reads the case called name of root.
func (s Suite) Read(root fs.FS, name string) (*Case, error) {
	dir, err := fs.Sub(root, name)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", name, err)
	}
	data, err := fs.ReadFile(dir, RequestFile)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", name, err)
	}
	if !bytes.HasPrefix(data, []byte("#")) {
		return nil, fmt.Errorf("case %s: the first line of %s must be a comment that says why the case exists", name, RequestFile)
	}
	c := &Case{}
	if c.Request, err = request.Unmarshal(data); err != nil {
		return nil, fmt.Errorf("case %s: %s: %w", name, RequestFile, err)
	}
	if c.Request.GetWorkloadId() == "" {
		return nil, fmt.Errorf("case %s: %s needs a workload_id, or it would render differently each time", name, RequestFile)
	}
	if err := s.fill(c, dir); err != nil {
		return nil, fmt.Errorf("case %s: %w", name, err)
	}
	return c, nil
}

// fill sets what the case in dir brings, and of the suite the rest.
func (s Suite) fill(c *Case, dir fs.FS) error {
	o := &c.Options
	*o = engine.Options{Templates: maps.Clone(s.Templates), Layers: s.Layers, Catalog: s.Catalog, Config: s.Config}
	if data, err := fs.ReadFile(dir, ConfigFile); err == nil {
		if o.Config, err = config.Load(config.Sources{Text: data, Name: ConfigFile, Namespace: Namespace}); err != nil {
			return err
		}
		c.Configured = true
	}
	if data, err := fs.ReadFile(dir, CatalogFile); err == nil {
		var faults []catalog.Fault
		if o.Catalog, faults = catalog.Parse(data); len(faults) > 0 {
			return fmt.Errorf("%s:%s", CatalogFile, faults[0])
		}
	}
	own, err := fs.Sub(dir, LayerFolder)
	if err != nil {
		return err
	}
	more, err := layers.Read(own)
	if err != nil {
		return fmt.Errorf("%s/%w", LayerFolder, err)
	}
	o.Layers = slices.Concat(o.Layers, more)
	c.Layered = len(more) > 0
	files, err := fs.Glob(dir, TemplateFolder+"/*")
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			return err
		}
		c.Own = append(c.Own, path.Base(file))
		o.Templates[path.Base(file)] = string(data)
	}
	_, err = fs.Stat(dir, ErrorFile)
	c.Refused = err == nil
	return nil
}
