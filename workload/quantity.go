package workload

import "strings"

// Bounds of a quantity, in characters. No volume has more than 1e18 bytes.
const (
	maxQuantity = 32
	maxExponent = 3
)

// IsShortQuantity reports whether s, if it is a Kubernetes quantity, is one
// that can be parsed in no time. resource.ParseQuantity takes minutes for
// 1e-99999999.
func IsShortQuantity(s string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	return len(s) <= maxQuantity && len(exponent) <= maxExponent
}
