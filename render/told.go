package render

import (
	"errors"
	"slices"
	"strings"
	"text/template"
)

// maxPlaces bounds the places that an error tells, from the innermost on: a part
// that includes itself has as many as parts can be nested.
const maxPlaces = 4

// told returns an error of the template called name without the values that
// text/template and its functions quote, which may be secret: it keeps the
// place, the text of the template there, and a reason that holds no value.
func told(name string, err error) error {
	var known problem
	isKnown := errors.As(err, &known)
	if !errors.As(err, &template.ExecError{}) {
		if !isKnown {
			known = "cannot be executed"
		}
		return problem(name + ": " + string(known))
	}
	if strings.Count(string(known), "executing ") >= maxPlaces {
		return known
	}
	where, reason, _ := strings.Cut(strings.TrimPrefix(err.Error(), "template: "), ">: ")
	switch {
	case isKnown:
		reason = string(known)
	case strings.HasPrefix(reason, "range can't iterate over "):
		reason = "range can't iterate over it"
	case !isHarmless(reason):
		reason = "it cannot be evaluated"
	}
	// These stand nowhere in the template.
	for _, own := range [...]string{stepFunc, enterFunc, leaveFunc, slotFunc} {
		if place, found := strings.CutSuffix(where, " at <"+own); found {
			return problem(place + ": " + reason)
		}
	}
	// Functions with an underscore stand in for those that the author named.
	return problem(strings.ReplaceAll(where, "<_", "<") + ">: " + reason)
}

// isHarmless knows what text/template says without ever quoting a value.
func isHarmless(reason string) bool {
	starts := [...]string{
		"can't evaluate field ",
		"error calling eq: incompatible types",
		"error calling ne: incompatible types",
		"map has no entry for key ",
		"nil data; no entry for key ",
		"nil pointer evaluating ",
		"template ",
		"wrong number of args ",
		"wrong type for value; ",
	}
	return slices.ContainsFunc(starts[:], func(start string) bool { return strings.HasPrefix(reason, start) })
}
