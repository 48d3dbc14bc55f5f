package workload_test

import (
	"testing"

	"github.com/agynio/k8s-runner/workload"
)

func TestIsShortQuantity(t *testing.T) {
	for text, short := range map[string]bool{
		"10Gi": true, "1E": true, "1Ei": true, "1e18": true, "1e-18": true, "100m": true, "": true,
		"1e-99999999": false, "1E-99999999": false, "1e1000": false, "000000000000000000000000000000001": false,
	} {
		if got := workload.IsShortQuantity(text); got != short {
			t.Errorf("%q is short: %v", text, got)
		}
	}
}
