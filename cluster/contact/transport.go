package contact

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Codes of requests that have no answer.
const (
	codeError     = "error"
	codeCancelled = "cancelled"
)

// Wrap returns next with a look at all that goes through it.
func (c *Contact) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{next, c.look} }

// Caches returns next, which must be the way of watched caches alone, with a look
// at what fills them. It is to be wrapped in addition.
func (c *Contact) Caches(next http.RoundTripper) http.RoundTripper { return &transport{next, c.listen} }

// transport passes on requests, with a look at each.
type transport struct {
	next http.RoundTripper
	look func(http.RoundTripper, *http.Request) (*http.Response, error)
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.look(t.next, r) }

// WrappedRoundTripper lets client-go find what is below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (c *Contact) look(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	asked, begin := read(r), time.Now()
	answer, err := next.RoundTrip(r)
	if !asked.lasts() {
		c.meter.Took(asked.verb, time.Since(begin))
	}
	if err != nil {
		if errors.Is(r.Context().Err(), context.Canceled) {
			c.meter.Asked(asked.verb, asked.resource, codeCancelled)
			return answer, err
		}
		c.meter.Asked(asked.verb, asked.resource, codeError)
		if asked.verb != verbConnect { // an upgrade that is refused is an error too, and an answer
			c.fails("no answer: " + line(err))
		}
		return answer, err
	}
	c.meter.Asked(asked.verb, asked.resource, strconv.Itoa(answer.StatusCode))
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusUnauthorized {
		c.fails("it answers " + strconv.Itoa(answer.StatusCode) + " " + http.StatusText(answer.StatusCode))
	} else if c.answers() && answer.StatusCode == http.StatusForbidden {
		return unsettled(answer)
	}
	return answer, err
}

// noRole is what the API server says if no Role allows what is asked, and not of
// what its admission refuses.
const noRole = " is forbidden: User "

// unsettled returns the answer of an API server that has only just begun to answer.
// If it says that no Role allows what is asked, that is made 503 of, which it is:
// to be asked again.
func unsettled(answer *http.Response) (*http.Response, error) {
	said, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err //nolint:wrapcheck // it is as without us
	}
	if bytes.Contains(said, []byte(noRole)) {
		answer.StatusCode = http.StatusServiceUnavailable
		answer.Status = strconv.Itoa(answer.StatusCode) + " " + http.StatusText(answer.StatusCode)
		answer.Header = http.Header{"Content-Type": {"application/json"}}
		said = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,` +
			`"message":"the API server has only just been started, and knows no Roles yet"}`)
		answer.ContentLength = int64(len(said))
	}
	answer.Body = io.NopCloser(bytes.NewReader(said))
	return answer, nil
}

// longest is how much of an error is told, in bytes.
const longest = 200

// line is err on one line, which is of the way to the server: the request is not
// part of it.
func line(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

func (c *Contact) listen(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if asked := read(r); err == nil && asked.fills() && answer.StatusCode == http.StatusOK {
		answer.Body = newBody(answer.Body, func() { c.meter.Heard(asked.resource) })
	}
	return answer, err
}

// silence is how long a watch may bring nothing: the API server says about once a
// minute, with a bookmark, that there was no event. After it the watch is ended, and
// begun anew where it was: one that is open and mute would show what was for ever.
const silence = 3 * time.Minute

// body tells of each piece that is read, and ends when none comes.
type body struct {
	io.ReadCloser
	heard func()
	mute  *time.Timer
}

func newBody(of io.ReadCloser, heard func()) *body {
	return &body{of, heard, time.AfterFunc(silence, func() { _ = of.Close() })} // the reader sees it
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.heard()
		b.mute.Reset(silence)
	}
	return n, err
}

// Close closes it.
func (b *body) Close() error {
	b.mute.Stop()
	return b.ReadCloser.Close() //nolint:wrapcheck // it is as without us
}
