// Package quantity reads Kubernetes quantities that come from outside.
package quantity

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of a quantity, in characters. No volume has more than 1e18 bytes.
const (
	maxLength   = 32
	maxExponent = 3
)

// Parse parses s. It reports false for what is no quantity, and for what
// resource.ParseQuantity would take minutes for, such as 1e-99999999.
func Parse(s string) (resource.Quantity, bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(s) > maxLength || len(exponent) > maxExponent {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

// IsSize reports whether s is a quantity above zero.
func IsSize(s string) bool {
	q, ok := Parse(s)
	return ok && q.Sign() > 0
}

// Bytes returns a number of bytes. It reports false for what is no whole number of
// them, or none that an int64 holds.
func Bytes(s string) (int64, bool) {
	q, ok := Parse(s)
	if !ok {
		return 0, false
	}
	n := q.Value() // rounded up, or the nearest that there is
	return n, q.CmpInt64(n) == 0
}

// Exceeds reports whether request is above limit; what is no quantity exceeds
// nothing.
func Exceeds(request, limit string) bool {
	r, hasRequest := Parse(request)
	l, hasLimit := Parse(limit)
	return hasRequest && hasLimit && r.Cmp(l) > 0
}
