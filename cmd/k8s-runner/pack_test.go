package main

import (
	"strings"
	"testing"
)

// TestFitting is about the border, which is too large for a script.
func TestFitting(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string // in the error; empty if there is to be none
	}{
		"as much as fits":  {map[string]string{"a.yaml": strings.Repeat("a", maxConfigMap-1), "b.yaml": "b"}, ""},
		"one byte more":    {map[string]string{"a.yaml": strings.Repeat("a", maxConfigMap), "b.yaml": "b"}, "1048577 bytes, and a ConfigMap holds 1048576"},
		"a name with ?":    {map[string]string{"a?.yaml": ""}, "a?.yaml cannot be a key"},
		"text of no UTF-8": {map[string]string{"a.yaml": "\xff"}, "a.yaml is not UTF-8"},
	} {
		err := fitting(c.files)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
