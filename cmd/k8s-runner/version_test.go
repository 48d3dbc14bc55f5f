package main

import (
	"bytes"
	"regexp"
	"testing"
)

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"version"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^k8s-runner \S+ go1\.\S+ linux/\S+\n$`).MatchString(out.String()) {
		t.Errorf("it prints %q", out.String())
	}
}
