package ziti

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/agynio/k8s-runner/overlay"
)

// judged wraps an error of the SDK, and tells whether it is about the identity. The
// error is kept as text: it may quote addresses with codes and states in them, which
// are cleaned away, and nobody needs more of it.
func judged(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case unauthorized(err):
		return fmt.Errorf("%s: %w: %s", doing, overlay.ErrUnauthorized, clean(err.Error()))
	}
	return fmt.Errorf("%s: %s", doing, clean(err.Error()))
}

// unauthorized reports whether a controller has refused the identity. The type of an
// answer gets lost where the SDK wraps it with %v, and when it logs in with OIDC there
// never was one; so their texts count. That a text says 401 elsewhere may be a proxy's.
func unauthorized(err error) bool {
	if answer := (interface{ IsCode(int) bool })(nil); errors.As(err, &answer) {
		return answer.IsCode(http.StatusUnauthorized)
	}
	return regexp.MustCompile(`status 401$|error for request \S*: (UNAUTHORIZED|INVALID_AUTH): `).MatchString(err.Error())
}
