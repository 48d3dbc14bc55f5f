package lint

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agynio/k8s-runner/render/golden"
)

// CaseFolder is the folder of golden cases beside templates.
const CaseFolder = "cases"

// Finding is one thing that is wrong.
type Finding struct {
	// File is relative to the folder of the templates; empty means all of it.
	File string
	// Line is from 1; 0 if there is none.
	Line    int
	Message string
}

// String returns "file:line: message".
func (f Finding) String() string {
	switch {
	case f.File == "":
		return f.Message
	case f.Line == 0:
		return f.File + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message)
}

// findings are what was found so far, by what makes them the same thing: a
// fault of a part shows in every container that the part makes.
type findings map[Finding]Finding

var (
	place = regexp.MustCompile(`^([^:\n]+):(\d+)(?::\d+)?: `)
	// which is what tells one container that a part makes from another.
	which = regexp.MustCompile(`(initContainers|containers)?\[\d+\]`)
)

// addOf adds an error of a render of s; its text says with which request.
func (f *findings) addOf(s subject, err error) {
	for _, e := range leaves(err) {
		found := newFinding(e, "")
		if slices.Contains(s.ownTemplates, found.File) {
			found.File = path.Join(path.Dir(s.file), golden.TemplateFolder, found.File)
		}
		f.put(found, " (with "+s.name+")")
	}
}

// add adds an error that names its place, or is about file.
func (f *findings) add(err error, file string) {
	for _, e := range leaves(err) {
		f.put(newFinding(e, file), "")
	}
}

func (f *findings) put(found Finding, context string) {
	if *f == nil {
		*f = findings{}
	}
	same := found
	same.Message = which.ReplaceAllString(found.Message, "[]")
	if _, there := (*f)[same]; !there {
		found.Message += context
		(*f)[same] = found
	}
}

func newFinding(err error, file string) Finding {
	text := strings.Join(strings.Fields(err.Error()), " ")
	at := place.FindStringSubmatch(text)
	if file != "" || at == nil {
		return Finding{File: file, Line: min(len(file), 1), Message: text}
	}
	line, _ := strconv.Atoi(at[2]) // digits
	return Finding{File: at[1], Line: line, Message: text[len(at[0]):]}
}

func (f findings) sorted() []Finding {
	return slices.SortedFunc(maps.Values(f), func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
}

// leaves returns the innermost errors of err, which name their places first.
func leaves(err error) []error {
	switch e := err.(type) { //nolint:errorlint // it takes err apart
	case interface{ Unwrap() []error }:
		var all []error
		for _, part := range e.Unwrap() {
			all = append(all, leaves(part)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return leaves(inner)
		}
	}
	return []error{err}
}
