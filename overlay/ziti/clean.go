package ziti

import (
	"regexp"
	"strings"
)

// longest is the longest text that is passed on, in bytes. Some quote whole pages.
const longest = 500

// clean returns a text of the SDK without what might open a door: keys, tokens, and
// the queries of addresses. It is one line.
func clean(text string) string {
	for _, secret := range []struct{ pattern, instead string }{
		{`(?s)-----BEGIN.*?(-----END[^-]*-----|$)`, "(PEM)"},
		{`eyJ[\w-]+\.[\w-]+(\.[\w-]*)?`, "(token)"},
		{`\?[^\s"'\])]+`, "?…"},
	} {
		text = regexp.MustCompile(secret.pattern).ReplaceAllString(text, secret.instead)
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
