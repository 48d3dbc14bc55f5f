package request_test

import (
	"strings"
	"testing"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
	"github.com/google/go-cmp/cmp"
)

// TestImages has the references of case C25 and their kin.
func TestImages(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for image, accepted := range map[string]bool{
		"a":                               true,
		"a/b/c":                           true,
		"busybox:1":                       true,
		"busybox:1.36.1-glibc_X":          true,
		"reg:5000/a/b":                    true,
		"reg.example.com:5000/a/b:tag":    true,
		"localhost/a":                     true,
		"127.0.0.1:5000/a":                true,
		"[2001:db8::1]:5000/a":            true,
		"a@sha256:" + hash:                true,
		"a:1@sha256:" + hash:              true,
		"a@sha512:" + hash + hash:         true,
		"a__b/c-d.e:1":                    true,
		"a:1234567":                       true,
		"a:" + strings.Repeat("t", 128):   true,
		"reg/" + strings.Repeat("a", 251): true,

		"https://reg/a":                     false,
		"docker://a":                        false,
		"A/B:1":                             false,
		"a/B":                               false,
		"Busybox":                           false,
		"REG.example.com/a":                 false,
		" a":                                false,
		"a ":                                false,
		"a b":                               false,
		"a\n":                               false,
		"a\nhostNetwork: true":              false,
		"a:":                                false,
		"a:-1":                              false,
		"a:b:c":                             false,
		"a@":                                false,
		"a@sha256:":                         false,
		"a@sha256:abc":                      false,
		"a@md5:" + hash[:32]:                false,
		"a@sha256:" + strings.ToUpper(hash): false,
		"/a":                                false,
		"a/":                                false,
		"a//b":                              false,
		"../a":                              false,
		"-a":                                false,
		"é":                                 false,
		"\x00":                              false,
		hash:                                false,
		"a:" + strings.Repeat("t", 129):     false,
		"reg/" + strings.Repeat("a", 256):   false,
	} {
		t.Run(image, func(t *testing.T) {
			req := &runnerv1.StartWorkloadRequest{Main: &runnerv1.ContainerSpec{Image: image}}
			if !accepted {
				if diff := cmp.Diff([]string{"invalid_image main.image"}, faults(t, req)); diff != "" {
					t.Errorf("violations (-want +got):\n%s", diff)
				}
				return
			}
			spec, err := request.Parse(req)
			if err != nil {
				t.Fatal(err)
			}
			if spec.Main.Image != image {
				t.Errorf("the image became %q", spec.Main.Image)
			}
		})
	}
}
