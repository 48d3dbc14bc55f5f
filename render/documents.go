package render

import (
	"errors"
	"io"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// document is the YAML of a template's output, values left out. It never
// changes.
type document struct {
	source string
	places []place
	roots  []*yaml.Node
}

// documents keeps what was parsed. Slots are numbered in the order in which a
// template prints them, so requests of one structure make one text, whatever
// their values are.
type documents struct {
	mu     sync.Mutex
	byText map[string]*document
}

// Bounds of documents. Rarely has a runner more than some dozens of structures.
const (
	maxDocuments    = 256
	maxDocumentText = 64 << 10
)

// parse returns the document of a template's output, and if it is not YAML what
// can be said of the places of its text.
func (d *documents) parse(output string) (*document, error) {
	d.mu.Lock()
	known := d.byText[output]
	d.mu.Unlock()
	if known != nil {
		return known, nil
	}
	doc, err := parseDocument(output)
	if err == nil && len(output) <= maxDocumentText {
		d.keep(output, doc)
	}
	return doc, err
}

func (d *documents) keep(output string, doc *document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byText == nil || len(d.byText) == maxDocuments {
		d.byText = map[string]*document{} // those in use come back
	}
	d.byText[output] = doc
}

func parseDocument(output string) (*document, error) {
	doc := &document{}
	doc.source, doc.places = unmark(output)
	for y := yaml.NewDecoder(strings.NewReader(doc.source)); ; {
		var node yaml.Node
		switch err := y.Decode(&node); {
		case errors.Is(err, io.EOF):
			return doc, nil
		case err != nil:
			return doc, err
		}
		doc.roots = append(doc.roots, node.Content[0])
	}
}
