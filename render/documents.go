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
	// bytes are those of all texts. A document has some dozens for each.
	bytes int
}

// Bounds of documents, in bytes but for the first. Rarely has a runner more than
// some dozens of structures, of some KiB.
const (
	maxDocuments     = 256
	maxDocumentText  = 64 << 10
	maxDocumentTexts = 2 << 20
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
	if _, kept := d.byText[output]; kept {
		return // by another render meanwhile
	}
	if d.byText == nil || len(d.byText) == maxDocuments || d.bytes+len(output) > maxDocumentTexts {
		d.byText, d.bytes = map[string]*document{}, 0 // those in use come back
	}
	d.byText[output] = doc
	d.bytes += len(output)
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
