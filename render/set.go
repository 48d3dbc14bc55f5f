package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Set is a compiled set of templates. What it renders never changes, and it is safe for
// concurrent use.
type Set struct {
	// objects are the files that render to objects, in the order of their names.
	objects []string
	digest  string
	// kinds are what each kind of object may look like.
	kinds  map[kind]*shape
	parsed documents
	// executors holds copies of the templates that are bound to the slots of one render.
	executors sync.Pool
}

// Digest identifies the files of s: the first 16 hexadecimal digits of a SHA-256.
func (s *Set) Digest() string { return s.digest }

// Compile parses files, which are template texts by name. Files whose names
// start with an underscore only define parts for the others. The error names
// the file and the line.
func Compile(files map[string]string) (*Set, error) {
	sprigs := library()
	// These functions are for the parser alone; each executor has its own.
	base := template.New("").Option("missingkey=error").Funcs(new(executor).functions(sprigs))
	s := &Set{kinds: newKinds()}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text) // a hash takes everything
		if i := strings.IndexAny(text, reserved); i >= 0 {
			return nil, fmt.Errorf("%s:%d: holds a character that is reserved for the renderer", name, lineAt(text, i))
		}
		if _, err := base.New(name).Parse(text); err != nil {
			return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: "))
		}
		if !strings.HasPrefix(name, "_") {
			s.objects = append(s.objects, name)
		}
	}
	for _, t := range base.Templates() {
		if t.Tree != nil {
			instrument(t.Tree, files[t.ParseName])
		}
	}
	s.digest = hex.EncodeToString(sum.Sum(nil))[:16]
	s.executors.New = func() any { return newExecutor(base, sprigs) }
	return s, nil
}

func lineAt(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }
