package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Set is a compiled set of templates. It never changes, and it is safe for
// concurrent use.
type Set struct {
	base *template.Template
	// objects are the files that render to objects, in the order of their names.
	objects []string
	digest  string
	// executors holds copies of base that are bound to the slots of one render.
	executors sync.Pool
}

// Digest identifies the files of s: the first 16 hexadecimal digits of a SHA-256.
func (s *Set) Digest() string { return s.digest }

// Compile parses files, which are template texts by name. Files whose names
// start with an underscore only define parts for the others. The error names
// the file and the line.
func Compile(files map[string]string) (*Set, error) {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)

	s := &Set{base: template.New("").Option("missingkey=error").Funcs(functions())}
	sum := sha256.New()
	for _, name := range names {
		text := files[name]
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		if i := strings.IndexAny(text, reserved); i >= 0 {
			return nil, fmt.Errorf("%s:%d: holds a character that is reserved for the renderer", name, lineAt(text, i))
		}
		if _, err := s.base.New(name).Parse(text); err != nil {
			return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: "))
		}
		if !strings.HasPrefix(name, "_") {
			s.objects = append(s.objects, name)
		}
	}
	for _, t := range s.base.Templates() {
		if t.Tree != nil {
			instrument(t.Tree, files[t.ParseName])
		}
	}
	s.digest = hex.EncodeToString(sum.Sum(nil))[:16]
	s.executors.New = func() any { return newExecutor(s.base) }
	return s, nil
}

func lineAt(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }
