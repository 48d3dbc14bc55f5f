package workload

import (
	"fmt"
	"strings"
	"time"
)

// Kind says what sort of thing went wrong, for the caller's next step.
type Kind int

// The kinds, named after the gRPC codes that they become.
const (
	Internal Kind = iota
	InvalidArgument
	NotFound
	AlreadyExists
	FailedPrecondition
	PermissionDenied
	ResourceExhausted
	Aborted
	Unavailable
	Unimplemented
)

// Error is an error for a caller. Neither its text nor its fields ever hold a
// secret value.
type Error struct {
	Kind Kind
	// Token is a stable snake_case word that names the error.
	Token string
	// Message says what is wrong and what to do.
	Message string
	// Violations are the fields at fault, for InvalidArgument.
	Violations []Violation
	// RetryAfter is positive where trying again can help.
	RetryAfter time.Duration
	// Err is the cause; it is logged and never sent to a caller.
	Err error
}

// Errorf returns an Error without a cause.
func Errorf(kind Kind, token, format string, args ...any) *Error {
	return &Error{Kind: kind, Token: token, Message: fmt.Sprintf(format, args...)}
}

// Error returns "token: message".
func (e *Error) Error() string { return e.Token + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Because returns e with a cause.
func (e *Error) Because(err error) *Error {
	e.Err = err
	return e
}

// Retry returns e with a time after which trying again can help.
func (e *Error) Retry(after time.Duration) *Error {
	e.RetryAfter = after
	return e
}

// NoSuchWorkload is the answer to every call about a workload that is not there.
func NoSuchWorkload(ref string) *Error {
	return Errorf(NotFound, "workload_not_found", "there is no workload %q", ref)
}

// Violation is one field of a request that is wrong.
type Violation struct {
	// Field is a path such as sidecars[0].env[2].name.
	Field string
	// Token is the stable word for this kind of fault.
	Token string
	// Message says what is wrong with the field.
	Message string
}

// Invalid returns an InvalidArgument error of all violations, or nil if there
// are none. Its token is that of the first.
func Invalid(violations []Violation) error {
	if len(violations) == 0 {
		return nil
	}
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = v.Field + ": " + v.Message
	}
	return &Error{
		Kind:       InvalidArgument,
		Token:      violations[0].Token,
		Message:    strings.Join(texts, "; "),
		Violations: violations,
	}
}
