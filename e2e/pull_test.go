//go:build e2e

package e2e

import (
	"testing"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// privateRegistry asks for user dev and password devpass. Its image is :latest,
// which the kubelet asks for at each start.
const privateRegistry = "127.0.0.1:5000"

// TestPrivateRegistry: an image is pulled with its credential, and not without
// it or with another one.
func TestPrivateRegistry(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	request := func(credentials ...*runnerv1.ImagePullCredential) *runnerv1.StartWorkloadRequest {
		req := sleeper()
		req.Main = shell("echo pulled")
		req.Main.Image = privateRegistry + "/private/busybox"
		req.ImagePullCredentials = credentials
		return req
	}
	right := &runnerv1.ImagePullCredential{Registry: "http://" + privateRegistry + "/", Username: "dev", Password: "devpass"}
	wrong := &runnerv1.ImagePullCredential{Registry: privateRegistry, Username: "dev", Password: "not-it"}
	for name, test := range map[string]struct {
		credentials []*runnerv1.ImagePullCredential
		pulled      bool
	}{
		"none":                 {nil, false},
		"wrong":                {[]*runnerv1.ImagePullCredential{wrong}, false},
		"right":                {[]*runnerv1.ImagePullCredential{right}, true},
		"both, in two Secrets": {[]*runnerv1.ImagePullCredential{wrong, right}, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(test.credentials...)
			r.start(t, req)
			if test.pulled {
				r.await(t, req.GetWorkloadId(), "it has ended", ended)
				if got := r.containerLog(t, req.GetWorkloadId(), "main"); got != "pulled\n" {
					t.Errorf("it printed %q", got)
				}
				return
			}
			r.await(t, req.GetWorkloadId(), "the pull fails", func(w *runnerv1.InspectWorkloadResponse) bool {
				reason := w.GetContainers()[0].GetReason()
				return reason == "ErrImagePull" || reason == "ImagePullBackOff"
			})
		})
	}
}
