package contact

import (
	"net/http"
	"strings"
)

// Verbs that Kubernetes' permissions have, and two more: an apply is a patch
// there, and connect is what lasts, such as a command or a log.
const (
	verbApply   = "apply"
	verbConnect = "connect"
	verbCreate  = "create"
	verbDelete  = "delete"
	verbGet     = "get"
	verbList    = "list"
	verbOther   = "other"
	verbPatch   = "patch"
	verbWatch   = "watch"
)

// request is what a request asks for, in few words: it names no object.
type request struct {
	verb string
	// resource is such as pods or pods/log; empty for what is none, such as the
	// API server's own health.
	resource string
}

// read finds that out by the form of the API's paths, /api/v1 or
// /apis/GROUP/VERSION and then namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE.
func read(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return request{verb: verbOf(r, true)}
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	switch resource {
	case "pods/exec", "pods/log":
		return request{verbConnect, resource}
	}
	return request{verbOf(r, len(parts) > 1), resource}
}

// verbOf is the verb of a request for one object, or for the objects of a kind.
func verbOf(r *http.Request, one bool) string {
	switch {
	case r.Method == http.MethodGet && one:
		return verbGet
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		return verbWatch
	case r.Method == http.MethodGet:
		return verbList
	case r.Method == http.MethodPost:
		return verbCreate
	case r.Method == http.MethodPatch && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch"):
		return verbApply
	case r.Method == http.MethodPatch:
		return verbPatch
	case r.Method == http.MethodDelete:
		return verbDelete
	}
	return verbOther
}

// lasts reports whether how long the answer takes says nothing of the server.
func (r request) lasts() bool { return r.verb == verbWatch || r.verb == verbConnect }

// fills reports whether the answer is what a cache is made of.
func (r request) fills() bool { return r.verb == verbWatch || r.verb == verbList }
