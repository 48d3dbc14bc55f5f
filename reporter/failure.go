package reporter

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// verdict is what becomes of a call that failed.
type verdict int

const (
	// refused is an answer to this call alone, which is made again later: the platform
	// may not know of a workload yet that it has asked for.
	refused verdict = iota
	// away means that no other call would be answered now either.
	away
	// rejected means that the service token does not count.
	rejected
	// tooOld means that the platform does not have the call at all.
	tooOld
)

// failure is an error of a call, with what becomes of it.
type failure struct {
	verdict verdict
	// denied means that the platform has looked at the call, and will not have it.
	denied bool
	text   string
}

func (f *failure) Error() string { return f.text }

// without returns err, if it is one, with a verdict and without the token, which a
// gateway could have put into its words.
func (g *Gateway) without(err error) error {
	if err == nil {
		return nil
	}
	said := status.Convert(err)
	text := said.Message()
	if g.token != "" {
		text = strings.ReplaceAll(text, g.token, "(the service token)")
	}
	f := &failure{text: said.Code().String() + ": " + short(text)}
	switch said.Code() {
	case codes.Unavailable, codes.DeadlineExceeded: // nobody said no
		f.verdict = away
	case codes.Unauthenticated:
		f.verdict, f.denied = rejected, true
	case codes.PermissionDenied, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition:
		f.denied = true
	case codes.Unimplemented:
		f.verdict = tooOld
	}
	return f
}

// longest is how much of a gateway's words is told, in bytes.
const longest = 200

// short is text on one line, and not longer than that.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
