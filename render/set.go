package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Layer is what an operator lays over the shipped templates.
type Layer struct {
	// Name says where it comes from, in errors and explanations.
	Name string
	// Files are template texts by name. They replace those of the same name below,
	// or are added.
	Files map[string]string
	// Patches are templates whose output is merged into the objects that the
	// files make, by kind.
	Patches map[string]string
	// Values are laid over those of the layers below, as .Values.
	Values map[string]any
}

// Set is a compiled set of templates. What it renders never changes, and it is
// safe for concurrent use.
type Set struct {
	// objects are the templates that render to objects, in the order of their
	// files' names; patches those that render to patches, in that of the layers.
	objects, patches []string
	values           map[string]any
	digest           string
	// kinds are what each kind of object may look like.
	kinds  *kinds
	parsed documents
	// executors holds copies of the templates that are bound to the slots of one render.
	executors sync.Pool
}

// Digest identifies what s was compiled of: the first 16 hexadecimal digits of a
// SHA-256.
func (s *Set) Digest() string { return s.digest }

// Compile parses files, which are template texts by name, and the layers above
// them. Files whose names start with an underscore only define parts for the
// others. The error names the layer, the file and the line.
func Compile(files map[string]string, layers ...Layer) (*Set, error) {
	sprigs := library()
	c := &compiler{
		// These functions are for the parser alone; each executor has its own.
		base:  template.New("").Option("missingkey=error").Funcs(new(executor).functions(sprigs)),
		texts: map[string]string{},
		sum:   sha256.New(),
	}
	s := &Set{kinds: newKinds(), values: map[string]any{}}
	var err error
	if s.objects, err = c.files(files, layers); err != nil {
		return nil, err
	}
	for _, l := range layers {
		if err := c.patches(s, l); err != nil {
			return nil, err
		}
		Overlay(s.values, clone(l.Values))
	}
	for _, t := range c.base.Templates() {
		if t.Tree != nil {
			instrument(t.Tree, c.texts[t.ParseName])
		}
	}
	values, err := json.Marshal(s.values)
	if err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}
	c.write("values", string(values))
	s.digest = hex.EncodeToString(c.sum.Sum(nil))[:16]
	s.executors.New = func() any { return newExecutor(c.base, sprigs) }
	return s, nil
}

type compiler struct {
	base *template.Template
	// texts are the sources by the name of the template.
	texts map[string]string
	sum   hash.Hash
}

// files parses the files that count, and returns the templates of objects.
func (c *compiler) files(files map[string]string, layers []Layer) (objects []string, err error) {
	texts, layerOf := maps.Clone(files), map[string]string{}
	for _, l := range layers {
		for name, text := range l.Files {
			texts[name], layerOf[name] = text, l.Name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		full := path.Join(layerOf[name], name)
		if err := c.parse(full, texts[name]); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(name, "_") {
			objects = append(objects, full)
		}
	}
	return objects, nil
}

// patches parses the patches of l.
func (c *compiler) patches(s *Set, l Layer) error {
	for _, name := range slices.Sorted(maps.Keys(l.Patches)) {
		full := path.Join(l.Name, name)
		if _, taken := c.texts[full]; taken {
			return fmt.Errorf("%s: a file and a patch of one name", full)
		}
		if err := c.parse(full, l.Patches[name]); err != nil {
			return err
		}
		if !strings.HasPrefix(name, "_") {
			s.patches = append(s.patches, full)
		}
	}
	return nil
}

func (c *compiler) parse(name, text string) error {
	c.write(name, text)
	c.texts[name] = text
	if i := strings.IndexAny(text, reserved); i >= 0 {
		return fmt.Errorf("%s:%d: holds a character that is reserved for the renderer", name, lineAt(text, i))
	}
	if _, err := c.base.New(name).Parse(text); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: "))
	}
	return nil
}

// write adds a text to the digest.
func (c *compiler) write(name, text string) {
	_, _ = fmt.Fprintf(c.sum, "%s %d\n%s", name, len(text), text) // a hash takes everything
}

func lineAt(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }
