package ziti

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/openziti/edge-api/rest_client_api_client/authentication"
	"github.com/openziti/edge-api/rest_client_api_client/service"
	"github.com/openziti/edge-api/rest_model"
	"github.com/openziti/edge-api/rest_util"
	sdk "github.com/openziti/sdk-golang/ziti"
	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/overlay"
)

func formatted(code string) error {
	return &rest_util.APIFormattedError{APIError: &rest_model.APIError{Code: code, Message: "no", RequestID: "r1"}}
}

func TestUnauthorized(t *testing.T) {
	payload := &service.ListServicesUnauthorized{Payload: &rest_model.APIErrorEnvelope{Error: &rest_model.APIError{Code: "UNAUTHORIZED", RequestID: "r1"}}}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"formatted":            {formatted("UNAUTHORIZED"), true},
		"formatted by the SDK": {rest_util.WrapErr(payload), true},
		"wrapped":              {fmt.Errorf("listing: %w", formatted("INVALID_AUTH")), true},
		"flattened":            {errors.New("failed to refresh services: no apiSession, authentication attempt failed: " + formatted("INVALID_AUTH").Error()), true},
		"of its own type":      {service.NewListServicesUnauthorized(), true},
		"at the login":         {fmt.Errorf("no apiSession: %w", authentication.NewAuthenticateUnauthorized()), true},
		"OIDC":                 {errors.New("failed to listen: no apiSession, authentication attempt failed: credential submission failed with status 401"), true},

		"another code":           {formatted("COULD_NOT_VALIDATE"), false},
		"not found":              {formatted("NOT_FOUND"), false},
		"forbidden that says so": {fmt.Errorf("%w: status 401", service.NewListServicesTooManyRequests()), false},
		"without an error":       {&rest_util.APIFormattedError{APIError: &rest_model.APIError{}}, false},
		"rate limited":           {service.NewListServicesTooManyRequests(), false},
		"a proxy's page":         {errors.New("authentication request start failed with status 401, either a misconfigured request was sent: <html>"), false},
		"OIDC out of order":      {errors.New("credential submission failed with status 503"), false},
		"a port":                 {errors.New("dial tcp 10.0.0.401:401: connect: connection refused"), false},
		"refused":                {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
		"a name":                 {&net.DNSError{Err: "no such host", Name: "ctrl"}, false},
		"cut off":                {io.ErrUnexpectedEOF, false},
		"late":                   {context.DeadlineExceeded, false},
		"unavailable":            {sdk.ErrControllerUnavailable, false},
		"no such service":        {errors.New("service 'runner-1' not found in ziti network"), false},
		"no permission to bind":  {sdk.ServiceAccessDeniedError{}, false},
		"no router":              {errors.New("timed out waiting for 1 listeners to be established, only had 0"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := judged("asking", c.err)
			if got := errors.Is(err, overlay.ErrUnauthorized); got != c.want {
				t.Errorf("%v is about the identity: %v, want %v", c.err, got, c.want)
			}
		})
	}
	if err := judged("asking", nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}

func TestClean(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain":         {"connection refused", "connection refused"},
		"several lines": {"one\n  two\t", "one two"},
		"a query":       {`Get "https://ctrl/oidc/authorize?code=1&state=2": EOF`, `Get "https://ctrl/oidc/authorize?…": EOF`},
		"a token":       {"bad token eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln here", "bad token (token) here"},
		"a key":         {"no: -----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n!", "no: (PEM) !"},
		"half a key":    {"no: -----BEGIN EC PRIVATE KEY-----\nAAAA", "no: (PEM)"},
		"a page":        {strings.Repeat("ä", 1000), strings.Repeat("ä", 250) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clean(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestForward: levels, and fields that are known to be harmless.
func TestForward(t *testing.T) {
	log, written := lineLog()
	forward(log)
	forward(log) // as for a second Network
	t.Cleanup(func() { logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{}) })
	line := logrus.WithField("token", "session-token").WithField("router", "edge-1").WithField("struct", struct{ Key string }{"BEGIN"})
	line.Debug("a debug line")
	line.Info("an info line")
	line.Warn("a warning")
	line.WithError(errors.New("refused?state=1")).Error("an error")
	text := written.String()
	wantClean(t, text)
	for want, level := range map[string]string{"an info line": "debug", "a warning": "warning", "an error": "warning", "edge-1": "warning"} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.Contains(line, want) && strings.Contains(line, "level="+level)
		}
		if !found {
			t.Errorf("no line of level %s has %q:\n%s", level, want, text)
		}
	}
	if got := strings.Count(text, "a warning"); got != 1 {
		t.Errorf("a line is shown %d times:\n%s", got, text)
	}
	if strings.Contains(text, "a debug line") {
		t.Errorf("the SDK's debug lines, which hold tokens, are shown:\n%s", text)
	}
}
