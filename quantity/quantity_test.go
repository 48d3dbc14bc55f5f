package quantity_test

import (
	"testing"

	"github.com/agynio/k8s-runner/quantity"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]bool{
		"10Gi": true, "1E": true, "1Ei": true, "1e18": true, "1e-18": true, "100m": true, "0": true, "-1": true,
		"": false, "x": false, "1 Gi": false, "1gi": false,
		"1e-99999999": false, "1E-99999999": false, "1e1000": false, "000000000000000000000000000000001": false,
		"00000000000000000000000000000001": true, "1e999": true, "1e-99": true, "1e-999": false, "1.5Gi": true, "+1": true, ".5": true,
		"1Gi ": false, "1e": false, "0x10": false, "1_000": false, "Infinity": false, "NaN": false, "1GB": false, "1Gi1": false,
	} {
		if _, got := quantity.Parse(text); got != want {
			t.Errorf("%q is a quantity: %v", text, got)
		}
	}
}

func TestIsSize(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "10Gi": true, "1m": true, "0": false, "-1": false, "": false, "1e-99999999": false} {
		if got := quantity.IsSize(text); got != want {
			t.Errorf("%q is a size: %v", text, got)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "64Mi": 64 << 20, "1G": 1e9, "1.5Ki": 1536, "1e3": 1000, "-1": -1, "0.5": -2, "1m": -2, "x": -2, "": -2, "1.0001Ki": -2,
	} {
		got, ok := quantity.Bytes(text)
		if ok != (want != -2) || ok && got != want {
			t.Errorf("%q is %d bytes: %v", text, got, ok)
		}
	}
}

func TestExceeds(t *testing.T) {
	for _, c := range []struct {
		request, limit string
		want           bool
	}{
		{"1", "1", false}, {"1001m", "1", true}, {"1Gi", "1G", true}, {"1G", "1Gi", false}, {"2", "", false}, {"", "1", false}, {"x", "1", false},
	} {
		if got := quantity.Exceeds(c.request, c.limit); got != c.want {
			t.Errorf("%q exceeds %q: %v", c.request, c.limit, got)
		}
	}
}
