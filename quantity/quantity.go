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

// Exceeds reports whether request is above limit; what is no quantity exceeds
// nothing.
func Exceeds(request, limit string) bool {
	r, hasRequest := Parse(request)
	l, hasLimit := Parse(limit)
	return hasRequest && hasLimit && r.Cmp(l) > 0
}
